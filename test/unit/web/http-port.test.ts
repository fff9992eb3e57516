import { once } from 'node:events';
import { request } from 'node:http';
import { BlockList, connect, type Socket } from 'node:net';
import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { RefusalCounts } from '../../../src/access/refusal-counts.ts';
import { createHttpPort, type HttpPortOptions } from '../../../src/web/http-port.ts';
import { LIMITS } from '../../../src/web/limits.ts';

const log = pino({ level: 'silent' });
const loopback = networks('127.0.0.0/8');

function networks(...list: string[]): BlockList {
  const blockList = new BlockList();
  for (const network of list) {
    const [address, prefix] = network.split('/');
    blockList.addSubnet(address as string, Number(prefix));
  }
  return blockList;
}

/** A port that answers GET /who with what it knows of the client, and takes POST /body. */
async function open(t: ExecutionContext, options: Partial<HttpPortOptions> = {}, hosts = ['127.0.0.1']) {
  const port = createHttpPort({ log, ...options });
  port.app.get('/who', async ({ ip, id, hostname, socket }) => ({ ip, id, hostname, port: socket.remotePort }));
  port.app.post('/body', async ({ body }) => ({ size: JSON.stringify(body).length }));
  port.app.get('/name/:name', async ({ params }) => params);
  const number = await port.listen(hosts, 0);
  t.teardown(() => port.close(0));
  return { number, port };
}

async function openSocket(t: ExecutionContext, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** What the server says until it ends the connection. */
async function untilEnd(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  await new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
  return text;
}

interface Who {
  ip: string;
  id: string;
  hostname: string;
  port: number;
}

async function who(port: number, headers: Record<string, string> = {}): Promise<Who> {
  const response = await new Promise<NodeJS.ReadableStream>((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/who', headers, agent: false }, resolve).once('error', reject).end();
  });
  let text = '';
  for await (const chunk of response) text += chunk.toString();
  return JSON.parse(text) as Who;
}

test('X-Forwarded-For is believed from trusted networks only, up to the first untrusted address', async (t) => {
  const cases: [trusted: BlockList | undefined, header: string, ip: string][] = [
    [undefined, '203.0.113.9', '127.0.0.1'],
    [networks('10.0.0.0/8'), '203.0.113.9', '127.0.0.1'],
    [loopback, '203.0.113.9', '203.0.113.9'],
    [loopback, '1.1.1.1, 203.0.113.9', '203.0.113.9'],
    [loopback, '127.0.0.9, 203.0.113.9', '203.0.113.9'],
    [networks('127.0.0.0/8', '10.0.0.0/8'), '6.6.6.6, 203.0.113.9, 10.1.2.3', '203.0.113.9'],
    [loopback, 'nonsense', 'nonsense'],
    [loopback, '', '127.0.0.1'],
  ];
  for (const [forwardedNetworks, header, ip] of cases) {
    const { number } = await open(t, { forwardedNetworks });
    t.is((await who(number, { 'x-forwarded-for': header })).ip, ip, header);
  }
});

test('X-Forwarded-Host is believed from trusted networks only', async (t) => {
  const headers = { host: 'inner', 'x-forwarded-host': 'public.example' };
  t.is((await who((await open(t)).number, headers)).hostname, 'inner');
  t.is((await who((await open(t, { forwardedNetworks: loopback })).number, headers)).hostname, 'public.example');
});

test('the client of a PROXY header is the client, and X-Forwarded-For goes by its address', async (t) => {
  const { number } = await open(t, { proxyNetworks: loopback, forwardedNetworks: networks('10.0.0.0/8') });
  for (const [address, ip] of [
    ['203.0.113.7', '203.0.113.7'],
    ['10.1.1.1', '6.6.6.6'],
  ] as const) {
    const socket = await openSocket(t, number);
    socket.write(`PROXY TCP4 ${address} 192.0.2.1 5555 80\r\nGET /who HTTP/1.1\r\nHost: a\r\n`);
    socket.write('X-Forwarded-For: 6.6.6.6\r\nConnection: close\r\n\r\n');
    const answer = await untilEnd(socket);
    t.regex(answer, new RegExp(`"ip":"${ip}".*"port":5555`));
  }
});

test('a network that is trusted both ways may come with a PROXY header or with X-Forwarded-For', async (t) => {
  const { number } = await open(t, { proxyNetworks: loopback, forwardedNetworks: loopback });
  t.is((await who(number, { 'x-forwarded-for': '203.0.113.9' })).ip, '203.0.113.9');
  t.is((await who(number)).ip, '127.0.0.1');
  const socket = await openSocket(t, number);
  socket.write('PROXY TCP4 203.0.113.7 192.0.2.1 5555 80\r\nGET /who HTTP/1.1\r\nHost: a\r\n');
  socket.write('X-Forwarded-For: 6.6.6.6\r\nConnection: close\r\n\r\n');
  t.regex(await untilEnd(socket), /"ip":"203.0.113.7"/);
});

test('a sane request id is kept, another is replaced', async (t) => {
  const { number } = await open(t);
  t.is((await who(number, { 'x-request-id': 'trace-1.A_b' })).id, 'trace-1.A_b');
  const made = new Set<string>();
  for (const id of ['', 'with space', 'x'.repeat(65), 'a/b', undefined]) {
    made.add((await who(number, id === undefined ? {} : { 'x-request-id': id })).id);
  }
  t.is(made.size, 5);
  for (const id of made) t.regex(id, /^[0-9a-f]{8}-[0-9a-z]+$/);
});

test('several hosts share one port and one application', async (t) => {
  const { number, port } = await open(t, {}, ['127.0.0.1', '127.0.0.2']);
  t.is((await who(number)).ip, '127.0.0.1');
  const response = await fetch(`http://127.0.0.2:${number}/who`);
  t.is(response.status, 200);
  t.is(response.headers.get('server'), 'Kiln');
  await response.text();
  await port.close();
  await t.throwsAsync(fetch(`http://127.0.0.2:${number}/who`));
});

test('bytes that are not HTTP are answered 400, and the connection is closed', async (t) => {
  const { number } = await open(t);
  for (const bytes of ['\x03\x00\x00 rtmp', 'GET /who HTTP/1.1\r\nbad header\r\n\r\n', 'GET /who HTTP/1.1\r\n\r\n']) {
    const socket = await openSocket(t, number);
    socket.write(bytes);
    t.regex(await untilEnd(socket), /^HTTP\/1.1 400 Bad Request\r\n/, bytes);
  }
});

test('a malformed request behind one that is being answered does not get into that answer', async (t) => {
  const port = createHttpPort({ log });
  let finish: () => void = () => {};
  port.app.get('/slow', async (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { 'content-length': '4' });
    reply.raw.write('ab');
    finish = () => reply.raw.end('cd');
  });
  const number = await port.listen(['127.0.0.1'], 0);
  t.teardown(() => port.close(0));
  const socket = await openSocket(t, number);
  socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(socket, 'data');
  const rest = untilEnd(socket);
  socket.write('nonsense\r\n\r\n');
  t.notRegex(await rest, /HTTP/);
  finish();
});

test('headers beyond the limit are answered 431', async (t) => {
  const { number } = await open(t);
  const socket = await openSocket(t, number);
  socket.write(`GET /who HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`);
  t.regex(await untilEnd(socket), /^HTTP\/1.1 431 /);
});

test('a body beyond 1 MiB is answered 413', async (t) => {
  const { number } = await open(t);
  const send = (size: number) =>
    fetch(`http://127.0.0.1:${number}/body`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify('x'.repeat(size)),
    });
  t.is((await send(1_000_000)).status, 200);
  t.is((await send(1_048_577)).status, 413);
});

test.serial('headers that come too slowly end in 408', async (t) => {
  const limits = [mock.property(LIMITS, 'headersMs', 200), mock.property(LIMITS, 'checkMs', 50)];
  t.teardown(() => limits.forEach(({ mock: limit }) => limit.restore()));
  const { number } = await open(t);
  const socket = await openSocket(t, number);
  socket.write('GET /who HTTP/1.1\r\nHost: a\r\n');
  const drip = setInterval(() => socket.write('X-A: b\r\n'), 50);
  const answer = await untilEnd(socket);
  clearInterval(drip);
  t.regex(answer, /^HTTP\/1.1 408 /);
});

test('an offer of another protocol than WebSocket is passed over, where WebSockets are taken too', async (t) => {
  const { number, port } = await open(t);
  const upgrades: (string | undefined)[] = [];
  port.app.server.on('upgrade', ({ headers }, socket) => {
    upgrades.push(headers.upgrade);
    socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
  });
  for (const [protocol, status] of [
    ['h2c', 200],
    ['WebSocket', 404],
    ['TLS/1.0', 200],
  ] as const) {
    const socket = await openSocket(t, number);
    socket.end(`GET /who HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\n\r\n`);
    t.true((await untilEnd(socket)).startsWith(`HTTP/1.1 ${status} `), protocol);
  }
  t.deepEqual(upgrades, ['WebSocket']);
});

test('a client that ends its side still gets its answer', async (t) => {
  const { number } = await open(t);
  const socket = await openSocket(t, number);
  socket.end('GET /who HTTP/1.1\r\nHost: a\r\n\r\n');
  t.regex(await untilEnd(socket), /^HTTP\/1.1 200 OK\r\n/);
});

test('paths that cannot be decoded or name too much are answered in the envelope', async (t) => {
  const { number } = await open(t);
  const get = (path: string) => fetch(`http://127.0.0.1:${number}${path}`);
  const bad = await get('/name/%zz');
  t.is(bad.status, 400);
  t.is(bad.headers.get('content-type'), 'application/json;charset=UTF-8');
  t.deepEqual(await bad.json(), { message: '[HTTP] Bad Request (400)', statusCode: 400 });
  const long = await get(`/name/${'x'.repeat(1025)}`);
  t.is(long.status, 414);
  t.deepEqual(await long.json(), { message: '[HTTP] URI Too Long (414)', statusCode: 414 });
  t.deepEqual(await (await get(`/name/${encodeURIComponent('ä#/ ß')}`)).json(), { name: 'ä#/ ß' });
});

test('closing lets a running request end, ends idle connections and cuts the rest', async (t) => {
  const port = createHttpPort({ log });
  let answer: () => void = () => {};
  const arrived = new Promise<void>((resolve) => {
    port.app.get('/wait', async () => {
      resolve();
      await new Promise<void>((go) => (answer = go));
      return 'done';
    });
  });
  let stuck: () => void = () => {};
  const stuckArrived = new Promise<void>((resolve) => (stuck = resolve));
  port.app.get('/stuck', () => {
    stuck();
    return new Promise(() => {});
  });
  const number = await port.listen(['127.0.0.1'], 0);
  const idle = await openSocket(t, number);
  idle.write('GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(idle, 'data');
  const running = fetch(`http://127.0.0.1:${number}/wait`);
  const hopeless = t.throwsAsync(fetch(`http://127.0.0.1:${number}/stuck`));
  await Promise.all([arrived, stuckArrived]);
  const closed = port.close(3000);
  t.is(port.close(), closed);
  await untilEnd(idle);
  answer();
  t.is(await (await running).text(), 'done');
  await hopeless;
  await closed;
});

for (const hosts of [['127.0.0.1'], ['127.0.0.2', '127.0.0.1']]) {
  test.serial(
    `a client beyond the limit of connections is logged with its address, host ${hosts.length}`,
    async (t) => {
      const limit = mock.property(LIMITS, 'connections', 1);
      t.teardown(() => limit.mock.restore());
      const lines: Record<string, unknown>[] = [];
      const recorded = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
      const refusals = new RefusalCounts();
      const { number } = await open(t, { log: recorded, refusals }, hosts);
      const first = await openSocket(t, number);
      first.write('GET /who HTTP/1.1\r\nHost: a\r\n\r\n');
      await once(first, 'data');
      const second = await openSocket(t, number);
      await untilEnd(second);
      t.like(lines[0], {
        event: 'client.refused',
        remote: `127.0.0.1:${second.localPort}`,
        msg: 'HTTP client refused: 1 connections are open',
      });
      t.deepEqual(refusals.all(), [{ protocol: 'http', reason: 'tooManyConnections', count: 1 }]);
    },
  );
}

test('an interceptor answers before the router, but for forwarded hosts and while the port closes', async (t) => {
  const { number, port } = await open(t, { forwardedNetworks: loopback });
  const seen: string[] = [];
  port.app.interceptors?.push(({ url = '' }, response, { hostname, headers }) => {
    if (url !== '/who') return false;
    seen.push(hostname);
    response.writeHead(200, { ...headers, 'content-length': 0 }).end();
    return true;
  });
  const get = async (path: string, headers: Record<string, string>): Promise<string> => {
    const socket = await openSocket(t, number);
    const lines = Object.entries({ connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
    return await untilEnd(socket);
  };
  t.regex(await get('/who', { host: 'a.example:8080' }), /^HTTP\/1.1 200 OK\r\nserver: Kiln\r\n/);
  t.regex(await get('/who', { host: '[2001:db8::1]:80' }), /^HTTP\/1.1 200/);
  t.deepEqual(seen, ['a.example', '[2001:db8::1]']);
  t.regex(await get('/who', { host: 'a', 'x-forwarded-host': 'b.example' }), /"hostname":"b\.example"/);
  t.regex(await get('/other', { host: 'a' }), /^HTTP\/1.1 404/);
  const kept = await openSocket(t, number);
  kept.write('GET /who HTTP/1.1\r\nhost: a\r\n\r\nGET /body');
  await once(kept, 'data');
  const closed = port.close(1000);
  kept.write(' HTTP/1.1\r\nhost: a\r\n\r\nGET /who HTTP/1.1\r\nhost: a\r\n\r\n');
  t.regex(await untilEnd(kept), /^HTTP\/1.1 503/);
  await closed;
  t.is(seen.length, 3);
});

test('registering the routes of a port has no limit of time', async (t) => {
  const { port } = await open(t);
  t.is(port.app.initialConfig.pluginTimeout, 0);
});
