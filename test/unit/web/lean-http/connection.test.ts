import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { HttpResponse } from '../../../../src/protocols/http.ts';
import { createHttpPort } from '../../../../src/web/http-port.ts';
import { LIMITS } from '../../../../src/web/limits.ts';
import { LeanResponse } from '../../../../src/web/lean-http/response.ts';
import { until } from '../../../support/time/until.ts';

/** A response that waits for the test. */
interface Waiting {
  readonly url: string;
  readonly response: HttpResponse;
  /** Events of the response so far. */
  readonly seen: string[];
  readonly isLean: boolean;
  readonly socket: Socket;
}

/** A port that takes `/wait/...` in front of the framework, which answers `/other` itself. */
async function open(t: ExecutionContext) {
  const port = createHttpPort({ log: pino({ level: 'silent' }) });
  const waiting: Waiting[] = [];
  port.app.interceptors?.push(({ url = '', socket: own }, response) => {
    if (!url.startsWith('/wait')) return false;
    const seen: string[] = [];
    for (const event of ['finish', 'close'] as const) response.once(event, () => seen.push(event));
    waiting.push({ url, response, seen, isLean: response instanceof LeanResponse, socket: own as Socket });
    return true;
  });
  port.app.get('/other', async () => 'other');
  port.app.post('/other', async ({ body }) => JSON.stringify(body));
  const accepted: Socket[] = [];
  port.app.server.on('connection', (one: Socket) => accepted.push(one));
  const number = await port.listen(['127.0.0.1'], 0);
  t.teardown(() => port.close(0));
  const socket = connect({ port: number, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  return { port, number, waiting, socket, accepted };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

function answer({ response }: Waiting, text: string, more: Record<string, string> = {}): void {
  response.writeHead(200, { ...more, 'content-length': text.length });
  response.end(Buffer.from(text));
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Text that has come so far, with the bodies alone. */
function received(socket: Socket) {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const text = (): string => Buffer.concat(chunks).toString('latin1');
  return { text, bodies: () => text().replace(/HTTP\/1\.1 (\d+)[^]*?\r\n\r\n/g, '[$1]') };
}

test('a head is written as node:http writes it', async (t) => {
  const { socket, waiting } = await open(t);
  const { text } = received(socket);
  const heads: string[] = [];
  for (const request of [get('/wait'), get('/wait').replace('GET', 'OPTIONS')]) {
    const before = text().length;
    socket.write(request);
    await until('the request', () => waiting.length > heads.length);
    answer(waiting.at(-1) as Waiting, 'x', { server: 'Kiln', Vary: 'a' });
    await until('the answer', () => text().endsWith('x') && text().length > before);
    heads.push(
      text()
        .slice(before)
        .replace(/Date: \w+, \d+ \w+ \d+ [\d:]+ GMT/, 'Date: now'),
    );
  }
  t.deepEqual(
    waiting.map(({ isLean }) => isLean),
    [true, false],
  );
  t.is(heads[0], heads[1]);
  t.regex(heads[0] ?? '', /\r\nDate: now\r\nConnection: keep-alive\r\nKeep-Alive: timeout=65\r\n\r\nx$/);
});

test('answers are sent in the order of the requests, whenever they are made', async (t) => {
  const { socket, waiting } = await open(t);
  const { bodies } = received(socket);
  socket.write(get('/wait/1') + get('/wait/2') + get('/wait/3'));
  await until('the requests', () => waiting.length === 3);
  const [first, second, third] = waiting as [Waiting, Waiting, Waiting];
  answer(third, 'third');
  answer(second, 'second');
  t.deepEqual([second.seen, second.response.destroyed], [[], false]);
  t.true(second.response.writableLength > 'second'.length);
  answer(first, 'first');
  await until('the answers', () => bodies() === '[200]first[200]second[200]third');
  for (const { seen, response } of waiting) t.deepEqual([seen, response.destroyed], [['finish', 'close'], true]);
});

test('a body of several pieces, and none', async (t) => {
  const { socket, waiting } = await open(t);
  const { bodies } = received(socket);
  socket.write(get('/wait') + get('/wait'));
  await until('the requests', () => waiting.length === 2);
  const [one, two] = waiting as [Waiting, Waiting];
  one.response.writeHead(200, { 'content-length': 4 });
  t.true(one.response.headersSent);
  for (const piece of ['a', '', 'bcd']) one.response.write(Buffer.from(piece));
  one.response.end();
  two.response.writeHead(201, { 'content-length': 0 });
  two.response.end();
  await until('the answers', () => bodies() === '[200]abcd[201]');
  await until('their ends', () => two.seen.length === 2);
});

test('a header that would be another header is refused', async (t) => {
  const { socket, waiting } = await open(t);
  socket.write(get('/wait'));
  await until('the request', () => waiting.length === 1);
  const { response } = waiting[0] as Waiting;
  for (const value of ['a\r\nb: c', 'a\0', '\u0100']) t.throws(() => response.writeHead(200, { a: value }));
  for (const name of ['a: b\r\nc', 'a b', '', 'a\u0100'])
    t.throws(() => response.writeHead(200, { [name]: 'x' }), undefined, name);
  t.false(response.headersSent);
});

test('requests come one by one, however they are cut, and node:http has those that come in pieces', async (t) => {
  const { number, waiting } = await open(t);
  const whole = get('/wait');
  for (const cut of [1, 5, whole.length - 1]) {
    const socket = connect(number, '127.0.0.1');
    t.teardown(() => socket.destroy());
    const { bodies } = received(socket);
    const count = waiting.length;
    socket.write(whole);
    await until('a request', () => waiting.length === count + 1);
    answer(waiting.at(-1) as Waiting, 'x');
    await until('its answer', () => bodies() === '[200]x');
    socket.write(whole.slice(0, cut));
    await until('a piece', () => waiting.at(-1)?.socket.bytesRead === whole.length + cut);
    socket.write(whole.slice(cut) + whole);
    await until('the others', () => waiting.length === count + 3);
    for (const one of waiting.slice(-2)) answer(one, 'y');
    await until('their answers', () => bodies() === '[200]x[200]y[200]y');
    t.deepEqual(
      waiting.slice(-3).map(({ isLean }) => isLean),
      [true, false, false],
    );
  }
});

test('what is for others goes to node:http, after the answers before it, and the rest of the connection with it', async (t) => {
  const { socket, waiting } = await open(t);
  const { bodies } = received(socket);
  const post = 'POST /other HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n[1]';
  socket.write(get('/wait') + get('/other') + post.slice(0, -2));
  await until('the request', () => waiting.length === 1);
  socket.write(post.slice(-2) + get('/wait'));
  t.is(bodies(), '');
  answer(waiting[0] as Waiting, 'mine');
  await until('the last request', () => waiting.length === 2);
  answer(waiting[1] as Waiting, 'last');
  await until('the answers', () => bodies() === '[200]mine[200]other[200][1][200]last');
  t.false(waiting[1]?.isLean);
});

test('a WebSocket is handed over with what comes behind its request, then and later', async (t) => {
  const { port, socket, waiting } = await open(t);
  const { promise, resolve } = Promise.withResolvers<{ upgraded: Duplex; head: Buffer }>();
  port.app.server.on('upgrade', (_request, upgraded, head) => resolve({ upgraded, head }));
  socket.write(get('/wait'));
  await until('the request', () => waiting.length === 1);
  answer(waiting[0] as Waiting, 'x');
  socket.write('GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframe');
  const { upgraded, head } = await promise;
  t.is(head.toString(), 'frame');
  const frames = Buffer.from(Array.from({ length: 1 << 22 }, (_, index) => index % 251));
  socket.write(frames);
  for (let turns = 0; turns < 100; turns++) await turn();
  t.true((upgraded as Socket).bytesRead < 1 << 20);
  const pieces: Buffer[] = [];
  upgraded.on('data', (piece: Buffer) => pieces.push(piece));
  await until('the frames', () => pieces.reduce((sum, { length }) => sum + length, 0) === frames.length);
  t.true(Buffer.concat(pieces).equals(frames));
  upgraded.end();
  await once(socket.resume(), 'end');
  upgraded.destroy();
});

test('bytes that wait are not changed by those that others send', async (t) => {
  const { number, socket, waiting } = await open(t);
  const { bodies } = received(socket);
  socket.write(get('/wait/mine').repeat(8) + get('/wait/last') + get('/other'));
  await until('the requests', () => waiting.length === 8);
  const others = connect(number, '127.0.0.1');
  t.teardown(() => others.destroy());
  others.write(get('/wait/theirs').repeat(8));
  await until('those of the others', () => waiting.length === 16);
  for (const one of waiting.slice(0, 8)) answer(one, 'x');
  await until('the last request', () => waiting.length === 17);
  t.is(waiting[16]?.url, '/wait/last');
  answer(waiting[16] as Waiting, 'y');
  await until('the answers', () => bodies() === `${'[200]x'.repeat(8)}[200]y[200]other`);
});

test('a client that ends its side behind a request for others gets its answer', async (t) => {
  const { socket } = await open(t);
  const { bodies } = received(socket);
  socket.end(get('/other'));
  await once(socket, 'end');
  t.is(bodies(), '[200]other');
});

test('a client that leaves is told to those who answer it; what they still say is dropped', async (t) => {
  for (const leave of ['destroy', 'end'] as const) {
    const { socket, waiting } = await open(t);
    socket.write(get('/wait/1') + get('/wait/2') + get('/other'));
    await until('the requests', () => waiting.length === 2);
    answer(waiting[1] as Waiting, 'x');
    if (leave === 'end') socket.resume();
    socket[leave]();
    await until('the end', () => waiting.every(({ response }) => response.destroyed));
    answer(waiting[0] as Waiting, 'x');
    t.deepEqual(
      waiting.map(({ seen }) => seen),
      [['close'], ['close']],
      leave,
    );
  }
});

test('a body that its client does not take to the end has not been sent', async (t) => {
  const { socket, waiting } = await open(t);
  socket.write(get('/wait'));
  await until('the request', () => waiting.length === 1);
  const { response, seen } = waiting[0] as Waiting;
  const body = Buffer.alloc(32 << 20);
  response.writeHead(200, { 'content-length': body.length });
  response.end(body);
  await once(socket, 'data');
  t.true(response.writableLength > 0);
  t.false(response.destroyed);
  socket.destroy();
  await until('the end', () => response.destroyed);
  t.deepEqual(seen, ['close']);
});

test('a response that is destroyed ends the connection', async (t) => {
  const { socket, waiting } = await open(t);
  socket.write(get('/wait') + get('/wait'));
  await until('the requests', () => waiting.length === 2);
  waiting[0]?.response.destroy();
  await once(socket.resume(), 'end');
  await until('the end', () => waiting.every(({ seen }) => seen.join() === 'close'));
  t.pass();
});

test('few requests are under way at once; those behind wait, and so does who sends ever more', async (t) => {
  const { socket, waiting } = await open(t);
  const { bodies } = received(socket);
  const count = 2000;
  socket.write(`GET /wait HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(8000)}\r\n\r\n`.repeat(count));
  await until('the first requests', () => waiting.length === 8);
  for (let turns = 0; turns < 100; turns++) await turn();
  t.is(waiting.length, 8);
  t.true((waiting[0]?.socket.bytesRead ?? 0) < 1 << 20);
  for (let sent = 0; sent < count;) {
    if (waiting.length === sent) await turn();
    else answer(waiting[sent++] as Waiting, '.');
  }
  await until('the answers', () => bodies().length === count * '[200].'.length);
});

test('a client that does not read is not answered any further', async (t) => {
  const { port, socket } = await open(t);
  let asked = 0;
  const body = Buffer.alloc(1 << 20);
  port.app.interceptors?.unshift((_request, response) => {
    asked++;
    response.writeHead(200, { 'content-length': body.length });
    response.end(body);
    return true;
  });
  socket.pause();
  const count = 64;
  socket.write(get('/big').repeat(count));
  await until('the first', () => asked > 0);
  for (let turns = 0; turns < 100; turns++) await turn();
  t.true(asked < count);
  let length = 0;
  socket.on('data', (chunk: Buffer) => (length += chunk.length)).resume();
  await until('all', () => length > count * body.length);
  t.is(asked, count);
});

/** Sets limits of this file's tests that are run one after the other. */
function limit(t: ExecutionContext, limits: Partial<typeof LIMITS>): void {
  for (const [name, ms] of Object.entries(limits)) {
    const { mock: changed } = mock.property(LIMITS, name as keyof typeof LIMITS, ms);
    t.teardown(() => changed.restore());
  }
}

test.serial('a connection that asks nothing is answered 408', async (t) => {
  limit(t, { headersMs: 50 });
  const { socket } = await open(t);
  const { text } = received(socket);
  await once(socket, 'end');
  t.regex(text(), /^HTTP\/1\.1 408 /);
});

test.serial('a connection that asks nothing more is closed, and one with an answer under way is not', async (t) => {
  limit(t, { keepAliveMs: 0 });
  const { number, socket, waiting } = await open(t);
  const { bodies } = received(socket);
  socket.write(get('/wait'));
  await until('the request', () => waiting.length === 1);
  const later = connect(number, '127.0.0.1');
  later.write(get('/wait'));
  await until('another request', () => waiting.length === 2);
  answer(waiting[1] as Waiting, 'y');
  await once(later.resume(), 'close');
  answer(waiting[0] as Waiting, 'x');
  await once(socket.resume(), 'end');
  t.is(bodies(), '[200]x');
});

test.serial('an answer that does not come is not waited for without end', async (t) => {
  limit(t, { idleMs: 50 });
  const { socket, waiting } = await open(t);
  socket.write(get('/wait'));
  await once(socket.resume(), 'end');
  await until('the end of the request', () => waiting[0]?.seen.join() === 'close');
  t.pass();
});

test('a port that closes ends idle connections, and others after their answers', async (t) => {
  const { port, number, socket, waiting, accepted } = await open(t);
  const busy = received(socket);
  socket.write(get('/wait'));
  await until('the request', () => waiting.length === 1);
  const [piped, idle] = [connect(number, '127.0.0.1'), connect(number, '127.0.0.1')];
  const refused = received(piped);
  piped.write(get('/wait').repeat(9));
  await until('more requests', () => waiting.length === 9);
  idle.resume();
  await until('its connection', () => accepted.length === 3);
  let isClosed = false;
  const closed = port.close(60_000).then(() => (isClosed = true));
  await once(idle, 'close');
  for (let turns = 0; turns < 100; turns++) await turn();
  t.false(isClosed);
  for (const one of waiting) answer(one, 'x');
  await Promise.all([once(socket, 'end'), once(piped, 'end')]);
  socket.end();
  await closed;
  t.is(busy.bodies(), '[200]x');
  t.true(refused.bodies().startsWith(`${'[200]x'.repeat(8)}[503]`));
});
