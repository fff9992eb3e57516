import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { connect } from 'node:net';
import { createSecureContext } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { OutcomeUnknownError, UnreachableError, type Cluster, type Rejection, type PeerRequest } from '#cluster';
import { exchange } from '../../cluster/peer/exchange.ts';
import { bodyHash } from '../../cluster/peer/mac.ts';
import { seal, type Call } from '../../cluster/peer/wire.ts';
import { startChild } from '../support/cluster/child-node.ts';
import { openNode, SECRET, TIMING } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { standStill } from '../support/time/stand-still.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';
import { issue } from '../support/network/x509.ts';

const CALL: PeerRequest = {
  method: 'POST',
  path: '/v1/x?y=ü',
  headers: { 'content-type': 'text/plain' },
  body: Buffer.from('question'),
};
/** No more than a guard: answers that are to be late have a time of their own. */
const TIMEOUT = 60_000;

const authority = issue('authority', { authority: true });
/** A port with TLS whose certificate is for a node. */
const secured = (name: string, issuer = authority): Options => {
  const { cert, key } = issue(name, { issuer });
  return { port: { host: '127.0.0.1', port: 0, secrets: [SECRET], tls: { cert, key, ca: authority.cert } } };
};

type Options = Partial<Parameters<typeof openNode>[3]>;

/** @param seen how many nodes each of them sees, itself included; all when not given */
async function open(t: ExecutionContext, ports: Options[] = [{}, {}], seen: readonly number[] = []) {
  const redis = await RedisServer.start(t);
  const nodes = await Promise.all(ports.map((options, n) => openNode(t, `node ${n}`, { url: redis.url }, options)));
  await until('nodes see each other', () =>
    nodes.every((node, n) => node.nodes().length === (seen[n] ?? nodes.length)),
  );
  return { redis, nodes: nodes as [Cluster, Cluster] };
}

const echo = (node: Cluster): void =>
  node.serve(async ({ method, path, headers, body }, from) => ({
    status: 201,
    headers: { 'x-from': from.id, 'x-call': `${method} ${encodeURIComponent(path)} ${headers['content-type']}` },
    body: Buffer.concat([body, Buffer.from(' answered')]),
  }));

const addressOf = (node: Cluster): string => node.nodes().find(({ id }) => id === node.self.id)?.address ?? '';

/** What a stranger gets. */
function post(address: string, headers: Record<string, string>, body = ''): Promise<number> {
  return new Promise((resolve, reject) => {
    request(`${address}/`, { method: 'POST', headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on('error', reject)
      .end(body);
  });
}

test('a call is carried with everything it has, and its answer back', async (t) => {
  const {
    nodes: [a, b],
  } = await open(t);
  echo(b);
  const answer = await a.forward(b.self, CALL, TIMEOUT);
  t.is(answer.status, 201);
  t.is(answer.body.toString(), 'question answered');
  t.deepEqual(answer.headers, { 'x-from': 'node 0', 'x-call': `POST ${encodeURIComponent(CALL.path)} text/plain` });
  const large = Buffer.alloc(3_000_000, 7);
  t.is((await a.forward(b.self, { ...CALL, body: large }, TIMEOUT)).body.length, large.length + ' answered'.length);
});

test('nodes call each other over TLS where certificates are configured', async (t) => {
  const reports: Rejection[] = [];
  const onRejection = (report: Rejection) => reports.push(report);
  const {
    nodes: [a, b],
  } = await open(
    t,
    ['node 0', 'node 1'].map((name) => ({ ...secured(name), onRejection })),
  );
  t.true(addressOf(b).startsWith('https:'));
  echo(a);
  echo(b);
  const large = { ...CALL, body: Buffer.alloc(300_000) };
  const calls = [a.forward(b.self, CALL, TIMEOUT), a.forward(b.self, large, TIMEOUT), b.forward(a.self, CALL, TIMEOUT)];
  for (const { status } of await Promise.all(calls)) t.is(status, 201);
  t.is((await a.forward(b.self, CALL, TIMEOUT)).body.toString(), 'question answered');
  t.deepEqual(reports, []);
});

for (const [what, name, issuer, ofServer, ofCaller] of [
  [
    'of another node',
    'node 7',
    authority,
    /CN=node 7\) does not name the node node 1/,
    /CN=node 7, .* does not name the node node 1/,
  ],
  [
    'of another authority',
    'node 1',
    issue('stranger', { authority: true }),
    /unable to verify|self.signed/,
    /is not valid: /,
  ],
] as const) {
  test(`a node with a certificate ${what} neither calls nor is called`, async (t) => {
    const reports: Rejection[] = [];
    const {
      nodes: [a, b],
    } = await open(t, [{ ...secured('node 0'), onRejection: (report) => reports.push(report) }, secured(name, issuer)]);
    for (const node of [a, b]) {
      const answer = async () => t.fail('it was called') as never;
      node.serve(answer, () => t.fail('it was called'));
    }
    const told = { instanceOf: UnreachableError, message: /has shown no valid certificate that names it/ };
    await t.throwsAsync(b.forward(a.self, CALL, TIMEOUT), told);
    await t.throwsAsync(b.connect(a.self, '/media', TIMEOUT), told);
    t.deepEqual(
      reports.map(({ kind, name: of }) => `${kind} ${of}`),
      ['certificates node 1'],
    );
    // the nodes watch each other, so either end may have been the first to notice
    t.true([ofCaller, ofServer].some((told) => told.test(reports[0]?.reason ?? '')));
    t.like(a.rejected, { certificates: 1 });
    const noted = { instanceOf: UnreachableError, message: ofServer };
    await t.throwsAsync(a.forward(b.self, CALL, TIMEOUT), noted);
    await t.throwsAsync(a.connect(b.self, '/media', TIMEOUT), noted);
    t.is(reports.length, 1);
    await b.close();
    await until('nothing is left of it', () => a.rejected.certificates === 0);
  });
}

test('a caller that shows no certificate is refused where nodes show theirs', async (t) => {
  const {
    nodes: [a, b],
  } = await open(
    t,
    ['node 0', 'node 1'].map((name) => secured(name)),
  );
  echo(b);
  const call = { from: a.self, to: b.self, method: 'POST', path: '/', headers: {}, time: Date.now(), nonce: 'once' };
  const secureContext = createSecureContext({ ca: authority.cert });
  const way = { address: addressOf(b), agent: new TlsAgent(), secrets: [SECRET], signal: AbortSignal.timeout(TIMEOUT) };
  await t.throwsAsync(
    exchange({ ...way, secure: { secureContext } }, { ...call, bodyHash: bodyHash(CALL.body) }, CALL.body),
    { instanceOf: UnreachableError, message: /has shown no valid certificate/ },
  );
});

test('while some nodes have TLS and others not yet, a call goes through or is known not to have', async (t) => {
  const {
    nodes: [plain, secure],
  } = await open(t, [{}, secured('node 1')]);
  echo(plain);
  echo(secure);
  t.is((await secure.forward(plain.self, CALL, TIMEOUT)).body.toString(), 'question answered');
  await t.throwsAsync(plain.forward(secure.self, CALL, TIMEOUT), { instanceOf: UnreachableError });
});

test('a node without the secret can neither call others nor answer for one', async (t) => {
  const port = { host: '127.0.0.1', port: 0, secrets: ['another'] };
  const {
    nodes: [a, b],
  } = await open(t, [{}, { port }], [1, 1]);
  let called = false;
  b.serve(async () => {
    called = true;
    return { status: 200, headers: {}, body: Buffer.alloc(0) };
  });
  await t.throwsAsync(a.forward(b.self, CALL, TIMEOUT), { instanceOf: UnreachableError });
  const call = {
    from: a.self,
    to: b.self,
    method: 'POST',
    path: '/',
    headers: {},
    time: Date.now(),
    nonce: 'once',
    bodyHash: bodyHash(CALL.body),
  };
  const way = { address: addressOf(b), agent: new Agent(), secrets: [SECRET], signal: AbortSignal.timeout(TIMEOUT) };
  await t.throwsAsync(exchange(way, call, CALL.body), { instanceOf: UnreachableError, message: /without proof/ });
  t.false(called);
  t.is(await post(addressOf(a), {}), 403);
  t.is(await post(addressOf(a), { 'kiln-call': 'e30', 'kiln-mac': 'x' }), 403);
});

test('the secret is changed node by node, while all call each other', async (t) => {
  const at = (...secrets: string[]) => ({ port: { host: '127.0.0.1', port: 0, secrets } });
  const { nodes } = await open(t, [at('old'), at('new', 'old'), at('new')], [2, 3, 2]);
  const [before, between, after] = nodes as readonly Cluster[] as [Cluster, Cluster, Cluster];
  for (const node of [before, between, after]) {
    node.serve(
      async () => ({ status: 200, headers: {}, body: Buffer.alloc(0) }),
      (stream) => stream.end('media'),
    );
  }
  for (const [from, to] of [
    [before, between],
    [between, before],
    [between, after],
    [after, between],
  ] as const) {
    t.is((await from.forward(to.self, CALL, TIMEOUT)).status, 200);
    const stream = await from.connect(to.self, '/', TIMEOUT);
    t.is((await once(stream, 'data')).toString(), 'media');
  }
  await t.throwsAsync(before.forward(after.self, CALL, TIMEOUT), { instanceOf: UnreachableError });
  await t.throwsAsync(after.forward(before.self, CALL, TIMEOUT), { instanceOf: UnreachableError });
});

test('recorded calls between nodes can be neither repeated nor changed', async (t) => {
  const {
    nodes: [a, b],
  } = await open(t);
  let calls = 0;
  b.serve(async () => {
    calls += 1;
    return { status: 200, headers: {}, body: Buffer.from('secret of the answer') };
  });
  // a node that takes the call down, under the address of b
  const heard: Record<string, string>[] = [];
  const listener = createServer((incoming, response) => {
    heard.push(incoming.headers as Record<string, string>);
    incoming.resume().on('end', () => response.end('an answer of a stranger'));
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  t.teardown(() => listener.close());
  const call = {
    from: a.self,
    to: b.self,
    method: 'POST',
    path: '/',
    headers: {},
    time: Date.now(),
    nonce: 'once',
    bodyHash: bodyHash(Buffer.from('body')),
  };
  const port = (listener.address() as { port: number }).port;
  const way = {
    address: `http://127.0.0.1:${port}`,
    agent: new Agent(),
    secrets: [SECRET],
    signal: AbortSignal.timeout(TIMEOUT),
  };
  await t.throwsAsync(
    exchange(way, call, Buffer.from('body')),
    { instanceOf: OutcomeUnknownError },
    "the answer is nobody's",
  );
  const own = { 'kiln-call': heard[0]?.['kiln-call'] ?? '', 'kiln-mac': heard[0]?.['kiln-mac'] ?? '' };
  t.is(await post(addressOf(b), own, 'other'), 400, 'another body');
  t.is(calls, 0);
  const real = { ...way, address: addressOf(b) };
  const fresh = { ...call, nonce: 'twice' };
  t.is((await exchange(real, fresh, Buffer.from('body'))).status, 200);
  await t.throwsAsync(exchange(real, fresh, Buffer.from('body')), {
    instanceOf: OutcomeUnknownError,
    message: /before/,
  });
  await t.throwsAsync(exchange(real, { ...call, nonce: 'late', time: Date.now() - 60_000 }, Buffer.from('body')), {
    instanceOf: UnreachableError,
    message: /too old by the clock/,
  });
  t.is(calls, 1);
});

test('a call that never reached that life of the node says so; one that may have, too', async (t) => {
  const {
    nodes: [a, b],
  } = await open(t);
  await t.throwsAsync(a.forward({ id: b.self.id, incarnation: 'earlier' }, CALL, TIMEOUT), {
    instanceOf: UnreachableError,
    message: /was restarted since/,
  });
  let release = (): void => {};
  b.serve(
    () => new Promise((resolve) => (release = () => resolve({ status: 200, headers: {}, body: Buffer.alloc(0) }))),
  );
  await t.throwsAsync(a.forward(b.self, CALL, 200), { instanceOf: OutcomeUnknownError });
  release();
  b.serve(async () => {
    throw new Error('of the handler');
  });
  t.is((await a.forward(b.self, CALL, TIMEOUT)).status, 500);
  const { self } = b;
  await b.close();
  // a connection that is open still may have carried the first one
  await until('not reached', () =>
    a.forward(self, CALL, TIMEOUT).then(
      () => false,
      (error) => error instanceof UnreachableError,
    ),
  );
});

test('a connection that was closed meanwhile costs no call', async (t) => {
  const {
    nodes: [a, b],
  } = await open(t);
  const proxy = await TcpProxy.open(t, Number(new URL(addressOf(b)).port));
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const way = {
    address: `http://127.0.0.1:${proxy.port}`,
    agent,
    secrets: [SECRET],
    signal: AbortSignal.timeout(TIMEOUT),
  };
  const call = (nonce: string) => ({
    from: a.self,
    to: b.self,
    method: 'POST',
    path: '/',
    headers: {},
    time: Date.now(),
    nonce,
    bodyHash: bodyHash(CALL.body),
  });
  echo(b);
  for (const nonce of ['1', '2', '3']) {
    t.is((await exchange(way, call(nonce), CALL.body)).status, 201);
    const [socket] = Object.values(agent.freeSockets).flat();
    // as if the other end had closed it and this one had not heard of it yet
    socket?.end();
  }
  let calls = 0;
  b.serve(async () => {
    calls += 1;
    proxy.heal();
    return { status: 200, headers: {}, body: Buffer.alloc(0) };
  });
  await t.throwsAsync(exchange(way, call('4'), CALL.body), { instanceOf: OutcomeUnknownError });
  t.is(calls, 1);
});

test('a node behind a connection that swallows everything is not reached, or not known to be', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const b = await openNode(t, 'b', { url: redis.url });
  const proxy = await TcpProxy.open(t, Number(new URL(addressOf(b)).port));
  proxy.blackhole();
  const call = {
    from: a.self,
    to: b.self,
    method: 'GET',
    path: '/',
    headers: {},
    time: Date.now(),
    nonce: 'n',
    bodyHash: '',
  };
  const way = {
    address: `http://127.0.0.1:${proxy.port}`,
    agent: new Agent(),
    secrets: [SECRET],
    signal: AbortSignal.timeout(2000),
  };
  await t.throwsAsync(exchange(way, call, Buffer.alloc(0)), { instanceOf: OutcomeUnknownError });
  proxy.cut();
});

test('a node that another has not heard of yet is called all the same', async (t) => {
  const redis = await RedisServer.start(t);
  const timing = { ...TIMING, beat: 60_000, ttl: 120_000 };
  const a = await openNode(t, 'a', { url: redis.url }, { timing });
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  let count = 0;
  const b = await until('one joins unheard of', async () => {
    await raw.client('KILL', 'TYPE', 'pubsub');
    const node = await openNode(t, `b${count++}`, { url: redis.url }, { timing });
    return a.nodes().every(({ id }) => id !== node.self.id) && node;
  });
  echo(b);
  t.is((await a.forward(b.self, CALL, TIMEOUT)).status, 201);
});

test.serial('a node that stood still hears what was answered meanwhile', async (t) => {
  const {
    redis,
    nodes: [a],
  } = await open(t, [{}]);
  await startChild(t, redis.url, 'child', 'k');
  const child = await until('it is known', () => a.nodes().find(({ id }) => id === 'child'));
  const answers = [
    a.forward(child, CALL, 1000),
    t.throwsAsync(a.connect(child, '/media', 1000), { message: /it does not accept streams/ }),
  ] as const;
  await new Promise(setImmediate);
  standStill(1500);
  t.is((await answers[0]).status, 503);
  await answers[1];
});

test('a node opens a stream of bytes to another, which knows its caller', async (t) => {
  for (const options of [[{}, {}], ['node 0', 'node 1'].map((name) => secured(name))]) {
    const {
      nodes: [a, b],
    } = await open(t, options);
    await t.throwsAsync(a.connect(b.self, '/media', TIMEOUT), {
      instanceOf: UnreachableError,
      message: /does not accept streams/,
    });
    const ended: string[] = [];
    b.serve(
      async () => ({ status: 200, headers: {}, body: Buffer.alloc(0) }),
      (stream, path, from) => {
        stream.write(`${path} of ${from.id}: `);
        stream.pipe(stream);
        stream.on('close', () => ended.push(path));
      },
    );
    const stream = await a.connect(b.self, '/media', TIMEOUT);
    stream.write('there and back');
    let text = '';
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await until('everything', () => text === '/media of node 0: there and back');
    await t.throwsAsync(a.connect({ ...b.self, incarnation: 'earlier' }, '/media', TIMEOUT), {
      instanceOf: UnreachableError,
      message: /was restarted since/,
    });
    const closed = new Promise((resolve) => stream.on('close', resolve));
    await b.close();
    await closed;
    t.deepEqual(ended, ['/media']);
    await t.throwsAsync(a.connect(b.self, '/media', TIMEOUT), { instanceOf: UnreachableError });
  }
});

test('a stranger opens no stream', async (t) => {
  const {
    nodes: [a],
  } = await open(t, [{}]);
  let taken = false;
  a.serve(
    async () => ({ status: 200, headers: {}, body: Buffer.alloc(0) }),
    () => (taken = true),
  );
  for (const call of ['', 'e30']) {
    t.is(
      await post(addressOf(a), { 'kiln-call': call, 'kiln-mac': call, connection: 'Upgrade', upgrade: 'kiln' }),
      403,
    );
  }
  t.false(taken);
});

test('a stream between nodes that is refused is closed, though the caller does not close it', async (t) => {
  const {
    nodes: [a],
  } = await open(t, [{}]);
  const { hostname, port } = new URL(addressOf(a));
  const ends: string[] = [];
  for (const mac of ['', 'kiln-call: e30\r\nkiln-mac: e30\r\n']) {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    t.teardown(() => socket.destroy());
    socket.on('error', () => ends.push('error')).resume();
    socket.write(`GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: kiln\r\n${mac}\r\n`);
    await once(socket, 'end');
    // what the other end has given up answers with a reset
    await until('it is closed over there', () => !socket.writable || (socket.write('still here'), ends.length > 0));
    t.true(socket.destroyed || ends.length > 0);
    ends.length = 0;
  }
});

test('signed messages of an unexpected shape do no harm', async (t) => {
  const {
    nodes: [a, b],
  } = await open(t);
  echo(a);
  const contents = [
    null,
    {},
    { from: b.self, method: 'GET', path: '/', headers: {}, nonce: 'x', time: Date.now(), bodyHash: '' },
  ];
  for (const content of contents) {
    const headers = seal([SECRET], 'call', content as unknown as Call);
    t.is(await post(addressOf(a), headers), 403);
    t.is(await post(addressOf(a), { ...headers, connection: 'Upgrade', upgrade: 'kiln' }), 403);
  }
  const question = { ...CALL, method: 'kiln:peer' };
  for (const body of [
    '',
    '{}',
    'null',
    '{"about":"store"}',
    '{"about":"store","held":[1]}',
    '{"about":"key"}',
    '{"about":"it"}',
  ]) {
    t.is((await b.forward(a.self, { ...question, body: Buffer.from(body) }, TIMEOUT)).status, 400, body);
  }
  t.is((await b.forward(a.self, CALL, TIMEOUT)).status, 201);
});

test('a call with a path as long as HTTP ports take it is carried', async (t) => {
  const {
    nodes: [a, b],
  } = await open(t);
  b.serve(async ({ path }) => ({ status: 200, headers: { 'x-long': path }, body: Buffer.from(path) }));
  for (const length of [8000, 12_500, 16_000]) {
    const path = `/${'x'.repeat(length)}`;
    t.is((await a.forward(b.self, { ...CALL, path }, TIMEOUT)).body.toString(), path);
  }
  const path = `/${'x'.repeat(100_000)}`;
  await t.throwsAsync(a.forward(b.self, { ...CALL, path }, TIMEOUT), {
    instanceOf: UnreachableError,
    message: /too long/,
  });
});

test('an error that a handler of calls throws is reported on its node', async (t) => {
  const faults: string[] = [];
  const {
    nodes: [a, b],
  } = await open(t, [{}, { onFault: ({ message }: Error) => faults.push(message) }]);
  b.serve(
    async () => {
      throw new Error('of the handler');
    },
    () => {
      throw new Error('of the taker');
    },
  );
  t.is((await a.forward(b.self, CALL, TIMEOUT)).status, 500);
  await until('told', () => faults.includes('of the handler'));
  const stream = (await a.connect(b.self, '/media', TIMEOUT)).resume();
  await until('it is closed', () => stream.closed);
});
