import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { apiRoutes } from '../../src/api/app.ts';
import { healthRoutes } from '../../src/web/health.ts';
import { createHttpPort } from '../../src/web/http-port.ts';
import { TOKEN, apiOptions, basic } from '../support/api/api.ts';

const authorization = basic(TOKEN);

async function listen(t: ExecutionContext) {
  const port = createHttpPort({ log: pino({ level: 'silent' }) });
  await port.app.register(healthRoutes(() => ({ ready: true })));
  await port.app.register(apiRoutes(await apiOptions()));
  const number = await port.listen(['127.0.0.1'], 0);
  t.teardown(() => port.close(0));
  return number;
}

async function call(agent: Agent, port: number, method: string, path: string, headers: Record<string, string> = {}) {
  const options = { agent, host: '127.0.0.1', port, method, path, headers: { authorization, ...headers } };
  const outgoing = request(options).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode, headers: response.headers, text, reused: outgoing.reusedSocket };
}

test('one connection carries call after call, failed ones too', async (t) => {
  const port = await listen(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const expected: [method: string, path: string, status: number][] = [
    ['GET', '/v1/version', 200],
    ['HEAD', '/v1/version', 200],
    ['GET', '/v1/vhosts/%zz', 400],
    ['GET', `/v1/vhosts/${'x'.repeat(2000)}`, 414],
    ['GET', '/v1/vhosts/default?x=%zz', 200],
    ['PROPFIND', '/v1/vhosts', 404],
    ['OPTIONS', '/v1/vhosts', 204],
    ['DELETE', '/v1/vhosts/default/apps/app/streams/s', 404],
    ['GET', '/livez', 200],
  ];
  for (const [index, [method, path, status]] of expected.entries()) {
    const answer = await call(agent, port, method, path);
    t.is(answer.status, status, `${method} ${path}`);
    t.is(answer.reused, index > 0);
    t.is(answer.headers.server, 'Kiln');
    t.truthy(answer.headers.date);
    if (status >= 400) t.is((JSON.parse(answer.text) as { statusCode: number }).statusCode, status);
  }
});

test("the caller's request id comes back when it is sane", async (t) => {
  const port = await listen(t);
  const agent = new Agent();
  t.is((await call(agent, port, 'GET', '/v1/version', { 'x-request-id': 'abc-1' })).headers['x-request-id'], 'abc-1');
  t.not((await call(agent, port, 'GET', '/v1/version', { 'x-request-id': 'a b' })).headers['x-request-id'], 'a b');
});

test('nonsense of every kind leaves the server answering', async (t) => {
  const port = await listen(t);
  let seed = 7;
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const whole = Buffer.from(
    `GET /v1/vhosts/default/apps/app HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n` +
      'Content-Length: 2\r\n\r\n{}',
  );
  const send = async (bytes: Buffer): Promise<void> => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {}).resume();
    socket.end(bytes);
    await new Promise((resolve) => socket.once('close', resolve));
  };
  for (let batch = 0; batch < 20; batch++) {
    await Promise.all(
      Array.from({ length: 20 }, () => {
        const bytes = Buffer.from(whole.subarray(0, random(4) === 0 ? random(whole.length) : whole.length));
        for (let i = random(6); i > 0 && bytes.length > 0; i--) bytes[random(bytes.length)] = random(256);
        return send(bytes);
      }),
    );
  }
  t.is((await call(new Agent(), port, 'GET', '/v1/version')).status, 200);
});
