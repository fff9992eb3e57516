import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import test from 'ava';
import type { Owner } from '#cluster';
import { coalesced } from '../../../cluster/coalesce.ts';
import { Faults } from '../../../cluster/faults.ts';
import { ConfigListeners } from '../../../cluster/listeners.ts';
import { isSigned, sign } from '../../../cluster/peer/mac.ts';
import { Nonces } from '../../../cluster/peer/nonces.ts';
import { UnauthenticatedPeers } from '../../../cluster/peer/unauthenticated-peers.ts';
import { seal, unseal, type Call } from '../../../cluster/peer/wire.ts';
import { timingOf, validity } from '../../../cluster/redis/timing.ts';
import { combined, growth, sum } from '../../../cluster/values.ts';
import { Watchers } from '../../../cluster/watchers.ts';
import { Random } from '../../soak/random.ts';
import { until } from '../../support/time/until.ts';

const owner = (fence: number): Owner => ({ id: 'a', incarnation: '1', fence, meta: null });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a coalesced call resolves with a run that began after it, and runs are few', async (t) => {
  let runs = 0;
  const ended: number[] = [];
  const first = Promise.withResolvers<void>();
  const run = coalesced(async () => {
    const own = ++runs;
    await (own === 1 ? first.promise : turn());
    ended.push(own);
  });
  const one = run();
  await turn();
  const more = [run(), run(), run()];
  first.resolve();
  await one;
  t.deepEqual(ended, [1]);
  await Promise.all(more);
  t.deepEqual(ended, [1, 2]);
  await run();
  t.is(runs, 3);
});

test('a coalesced run that fails fails those who waited for it, and the next one runs', async (t) => {
  let runs = 0;
  const run = coalesced(async () => {
    if (++runs === 1) throw new RangeError('first');
  });
  await t.throwsAsync(run(), { instanceOf: RangeError });
  await t.notThrowsAsync(run());
});

test('watchers get the last state of each key once a turn, of their path', async (t) => {
  const watchers = new Watchers();
  const calls: unknown[] = [];
  const undo = watchers.add('a', new Map([['a/1', owner(1)]]), (changes) =>
    calls.push(changes.map(({ key, owner: now }) => [key, now?.fence])),
  );
  watchers.notify(
    new Map([
      ['a/1', owner(2)],
      ['ab', owner(2)],
    ]),
  );
  watchers.notify(new Map([['a/2', undefined]]));
  await turn();
  t.deepEqual(calls.splice(0), [
    [
      ['a/1', 2],
      ['a/2', undefined],
    ],
  ]);
  watchers.notify(new Map([['b', owner(3)]]));
  await turn();
  t.deepEqual(calls, []);
  watchers.notify(new Map([['a', owner(4)]]));
  undo();
  await turn();
  t.deepEqual(calls, []);
});

test('a listener that fails is reported, and others are called all the same', async (t) => {
  const faults: string[] = [];
  const listeners = new ConfigListeners((error) => faults.push(error.message));
  const heard: string[] = [];
  listeners.add(async () => {
    await turn();
    throw new Error('mine');
  });
  listeners.add((keys) => void heard.push(...keys));
  t.is(listeners.settled(), undefined);
  listeners.notify(['a']);
  listeners.notify(['b']);
  await listeners.settled();
  t.is(listeners.settled(), undefined);
  t.deepEqual(heard, ['a', 'b']);
  t.deepEqual(faults, ['mine', 'mine']);
});

test('a repeated fault is reported once', (t) => {
  const told: string[] = [];
  const faults = new Faults((error) => told.push(error.message));
  for (let n = 0; n < 100; n++) faults.report(new Error('same'));
  t.deepEqual(told, ['same']);
});

test('counters grow; one that fell has begun anew', (t) => {
  t.deepEqual(growth({ a: 5, b: 3, c: 1 }, { a: 2, b: 7 }), { a: 3, b: 3, c: 1 });
  t.deepEqual(combined({ a: 1, b: 2 }, { b: 3, c: 4 }, sum), { a: 1, b: 5, c: 4 });
});

test('a nonce is good once, for as long as a call may be old', (t) => {
  const nonces = new Nonces(60_000, 2);
  t.is(nonces.use('a'), undefined);
  t.is(nonces.use('a'), 'repeated');
  t.is(nonces.use('b'), undefined);
  t.is(nonces.use('c'), 'busy');
  t.is(nonces.use('a'), 'repeated');
});

test('20,000 calls a second are remembered as long as they may be old', (t) => {
  const nonces = new Nonces(60_000);
  for (let n = 0; n < 20 * 20_000; n++) if (nonces.use(`${n}`) !== undefined) return t.fail(`${n}`);
  t.is(nonces.use('0'), 'repeated');
});

test('the oldest unauthenticated peer is removed for a new one; a node is not one of them', async (t) => {
  const strangers = new UnauthenticatedPeers(2);
  const server = createServer((socket) => strangers.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const gone: string[] = [];
  const clients: Socket[] = [];
  const come = async (name: string): Promise<void> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    clients.push(socket.on('close', () => gone.push(name)).on('error', () => {}));
    const [accepted] = (await once(server, 'connection')) as [Socket];
    if (name === 'node') strangers.proved(accepted);
  };
  t.teardown(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  for (const name of ['node', 'one', 'two', 'three']) await come(name);
  await until('one goes', () => gone.length > 0);
  await come('four');
  await until('the next goes', () => gone.length > 1);
  t.deepEqual(gone, ['one', 'two']);
});

test('signed text is neither changed nor used for something else', (t) => {
  const mac = sign(['secret'], 'call', 'text');
  t.true(isSigned(['secret'], 'call', 'text', mac));
  for (const [secret, kind, text] of [
    ['other', 'call', 'text'],
    ['secret', 'answer', 'text'],
    ['secret', 'call', 'texts'],
  ] as const) {
    t.false(isSigned([secret], kind, text, mac));
  }
  t.false(isSigned(['secret'], 'call', 'text', ''));
  t.false(isSigned(['secret'], 'call', 'text', `${mac}AAAA`));
  const call = {
    method: 'GET',
    path: '/ü',
    headers: {},
    from: { id: 'a', incarnation: '1' },
    to: { id: 'b', incarnation: '2' },
    time: 1,
    nonce: 'n',
    bodyHash: '',
  };
  const headers = seal(['secret'], 'call', call);
  t.deepEqual(unseal(['secret'], 'call', headers), call);
  t.is(unseal(['other'], 'call', headers), undefined);
  t.is(unseal(['secret'], 'answer', { ...headers, 'kiln-answer': headers['kiln-call'] }), undefined);
  t.is(unseal(['secret'], 'call', {}), undefined);
});

test('a signed text has the shape of a call, or is none', (t) => {
  const random = new Random(9);
  const call: Record<string, unknown> = {
    method: 'GET',
    path: '/',
    headers: {},
    from: { id: 'a', incarnation: '1' },
    to: { id: 'b', incarnation: '2' },
    time: 1,
    nonce: 'n',
    bodyHash: '',
  };
  t.deepEqual(unseal(['secret'], 'call', seal(['secret'], 'call', call as unknown as Call)), call as unknown as Call);
  const texts = ['method', 'path', 'nonce', 'bodyHash'].map((key) => [key, [null, undefined, 7, {}]] as const);
  const nodes = ['from', 'to'].map(
    (key) => [key, [null, undefined, 'a', {}, { id: 'a' }, { id: 'a', incarnation: 1 }]] as const,
  );
  const others = [
    ['headers', [null, undefined, 'x', { a: 1 }, { a: ['b'] }]],
    ['time', [null, undefined, '1']],
    ['nonce', ['n'.repeat(65)]],
  ] as const;
  const changed = [...texts, ...nodes, ...others].flatMap(([key, values]) =>
    values.map((value) => ({ ...call, [key]: value })),
  );
  for (const content of [null, 7, 'text', [], {}, ...changed]) {
    t.is(
      unseal(['secret'], 'call', seal(['secret'], 'call', content as unknown as Call)),
      undefined,
      JSON.stringify(content),
    );
  }
  for (let n = 0; n < 200; n++) {
    const text = Buffer.from(Array.from({ length: random.below(40) }, () => random.below(256))).toString('base64url');
    t.is(unseal(['secret'], 'call', { 'kiln-call': text, 'kiln-mac': sign(['secret'], 'call', text) }), undefined);
  }
});

test('previous holders have longer than any lease lasts', (t) => {
  const { grace, ttl, beat } = timingOf({ ttl: 9000, grace: 1000 });
  t.true(grace >= ttl + beat);
  t.true(timingOf().grace >= timingOf().ttl + timingOf().beat);
});

test('an unanswered beat and a question to the others are over before a lease ends', (t) => {
  const timing = timingOf();
  t.true(timing.beat + 2 * timing.command < validity(timing));
});
