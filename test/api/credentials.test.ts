import { BlockList } from 'node:net';
import { Agent, request, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { apiRoutes } from '../../src/api/app.ts';
import { createHttpPort } from '../../src/web/http-port.ts';
import { apiOptions, basic, TOKEN } from '../support/api/api.ts';

const RIGHT = basic(TOKEN);
const WRONG = basic('user-id:wrong');
const BURST = 20;

/** The API behind a balancer that tells of its clients. */
async function listen(t: ExecutionContext) {
  const balancers = new BlockList();
  balancers.addAddress('127.0.0.1');
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const port = createHttpPort({ forwardedNetworks: balancers, log });
  await port.app.register(apiRoutes(await apiOptions()));
  const number = await port.listen(['127.0.0.1'], 0);
  t.teardown(() => port.close(0));
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const call = async (authorization: string | undefined, client?: string, via: Agent | false = agent) => {
    const headers = { ...(authorization && { authorization }), ...(client && { 'x-forwarded-for': client }) };
    const outgoing = request({ agent: via, host: '127.0.0.1', port: number, path: '/v1/version', headers }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response) text += String(chunk);
    return { status: response.statusCode, headers: response.headers, body: JSON.parse(text) as object };
  };
  const guess = (client: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => call(WRONG, client)));
  return { call, guess, lines };
}

test('a client with too many wrong credentials gets 429 with Retry-After at once and the end of the connection', async (t) => {
  const { call, guess, lines } = await listen(t);
  const first = await guess('203.0.113.1', BURST);
  t.deepEqual(
    first.map(({ status }) => status),
    first.map(() => 401),
  );
  t.deepEqual(lines, []);
  for (let round = 0; round < 3; round++) {
    const { status, headers, body } = await call(WRONG, '203.0.113.1');
    t.is(status, 429);
    t.deepEqual(body, { message: '[HTTP] Too many wrong credentials (429)', statusCode: 429 });
    t.regex(headers['retry-after'] ?? '', /^[1-5]$/);
    t.is(headers.connection, 'close');
    t.is(headers['www-authenticate'], undefined);
    t.is(headers['content-type'], 'application/json;charset=UTF-8');
    t.truthy(headers['x-request-id']);
  }
  t.deepEqual(
    lines.map(({ remote, msg }) => [remote, msg]),
    [['203.0.113.1', 'too many wrong credentials for the management API: this address has to wait']],
  );
  t.false(JSON.stringify(lines).includes('wrong"'), 'no credential is logged');
});

test("one client's wrong credentials cost neither its neighbours nor the bearer of the right one anything", async (t) => {
  const { call, guess } = await listen(t);
  await guess('203.0.113.1', BURST);
  t.is((await call(WRONG, '203.0.113.1')).status, 429);
  t.is((await call(RIGHT, '203.0.113.1')).status, 200);
  t.is((await call(undefined, '203.0.113.1')).status, 401, 'a missing credential is no wrong one');
  t.is((await call('Basic !!!', '203.0.113.1')).status, 401);
  t.is((await call(WRONG, '203.0.113.2')).status, 401);
  t.is((await call(WRONG)).status, 401);
});

test('the client is the one that the balancer saw, not the one that the client names', async (t) => {
  const { call } = await listen(t);
  const statuses = await Promise.all(
    Array.from({ length: BURST + 1 }, (_, n) => call(WRONG, `198.51.100.${n}, 203.0.113.1`)),
  );
  t.is(statuses.filter(({ status }) => status === 429).length, 1);
  t.is((await call(WRONG, '198.51.100.1')).status, 401);
});

test('missing, malformed and right credentials are never counted', async (t) => {
  const { call } = await listen(t);
  for (const authorization of [undefined, 'Bearer x', 'Basic !!!', RIGHT]) {
    await Promise.all(Array.from({ length: BURST + 5 }, () => call(authorization, '203.0.113.1')));
  }
  t.is((await call(WRONG, '203.0.113.1')).status, 401);
});

test('a wrong credential waits for its answer; a client that hangs up before leaves the server as it was', async (t) => {
  const { call } = await listen(t);
  const answered: string[] = [];
  const wrong = call(WRONG, '203.0.113.1').then(() => answered.push('wrong'));
  await call(undefined, '203.0.113.1').then(() => answered.push('missing'));
  await wrong;
  t.deepEqual(answered, ['missing', 'wrong']);
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      const agent = new Agent();
      const answer = call(WRONG, '203.0.113.1', agent).catch((error: Error) => error);
      setImmediate(() => agent.destroy());
      await answer;
    }),
  );
  t.is((await call(RIGHT, '203.0.113.1')).status, 200);
});
