import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import {
  LostError,
  openRedis,
  place,
  UnavailableError,
  type Claim,
  type Cluster,
  type Lease,
  type RedisClusterOptions,
} from '#cluster';
import { startChild } from '../support/cluster/child-node.ts';
import { mirrored, openNode, SECRET, TIMING } from '../support/cluster/cluster.ts';
import { freePorts } from '../support/network/ports.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

const STOP = { silence: 'stop' } as const;
const CONTINUE = { silence: 'continue' } as const;

function leaseOf(claim: Claim): Lease {
  if ('owner' in claim) throw new Error(`held by ${claim.owner.id}`);
  return claim.lease;
}

/** Nodes on one Redis, each on a way of its own that can be cut. */
async function openCut(t: ExecutionContext, ids: readonly string[], timing: RedisClusterOptions['timing'] = TIMING) {
  const redis = await RedisServer.start(t);
  const nodes = await Promise.all(
    ids.map(async (id) => {
      const proxy = await TcpProxy.open(t, redis.port);
      return { proxy, node: await openNode(t, id, { url: `redis://127.0.0.1:${proxy.port}` }, { timing }) };
    }),
  );
  await seeEachOther(nodes.map(({ node }) => node));
  return { redis, nodes };
}

async function open(
  t: ExecutionContext,
  ids: readonly string[],
  durable = false,
  timing: RedisClusterOptions['timing'] = TIMING,
) {
  const redis = await RedisServer.start(t, { durable });
  const nodes = await Promise.all(ids.map((id) => openNode(t, id, { url: redis.url }, { timing })));
  await seeEachOther(nodes);
  return { redis, nodes: nodes as [Cluster, Cluster, ...Cluster[]] };
}

const seeEachOther = (nodes: readonly Cluster[]) =>
  until('nodes see each other', () =>
    nodes.every((node) => node.nodes().length === nodes.length && node.nodes().every(({ state }) => state === 'ready')),
  );

const connected = (...nodes: Cluster[]) => until('connected', () => nodes.every(({ state }) => state === 'connected'));
const degraded = (...nodes: Cluster[]) => until('degraded', () => nodes.every(({ state }) => state === 'degraded'));

test('a Redis that comes back empty gets everything back: claims from their holders first, and the configuration', async (t) => {
  const {
    redis,
    nodes: [a, b],
  } = await open(t, ['a', 'b']);
  await a.config.write([
    { key: 'kept', value: { n: 1 }, seen: 0 },
    { key: 'gone', value: 1, seen: 0 },
  ]);
  await a.config.write([{ key: 'gone', seen: a.config.entries().get('gone')?.revision ?? 0 }]);
  const pushed = leaseOf(await a.claim('s/pushed', 'meta', { ...CONTINUE, keepMs: 60_000 }));
  await pushed.keep('for the next');
  const pulled = leaseOf(await b.claim('s/pulled', 'meta', STOP));
  const before = { pushed: pushed.fence, pulled: pulled.fence };
  await redis.kill();
  await degraded(a, b);
  t.true(b.config.stale);
  t.deepEqual(b.config.entries().get('kept')?.value, { n: 1 }, 'what was known is there');
  await t.throwsAsync(b.config.write([{ key: 'new', value: 1, seen: 0 }]), { instanceOf: UnavailableError });
  await t.throwsAsync(b.claim('s/new', 1, STOP), { instanceOf: UnavailableError });
  await redis.run();
  await connected(a, b);
  // at once, when Redis knows nothing yet
  const rivals = await Promise.all([b.claim('s/pushed', 'other', STOP), a.claim('s/pulled', 'other', STOP)]);
  t.deepEqual(
    rivals.map((claim) => 'owner' in claim && claim.owner.id),
    ['a', 'b'],
  );
  await until('valid', () => pushed.valid && pulled.valid);
  t.true(pushed.fence > before.pushed && pulled.fence > before.pulled);
  t.false(pushed.signal.aborted || pulled.signal.aborted);
  await a.config.sync();
  await a.config.write([{ key: 'new', value: 2, seen: 0 }]);
  await b.config.sync();
  t.deepEqual(Object.fromEntries([...b.config.entries()].map(([key, { value }]) => [key, value])), {
    kept: { n: 1 },
    new: 2,
  });
  const late = await openNode(t, 'late', { url: redis.url });
  t.deepEqual([...late.config.entries().keys()].sort(), ['kept', 'new']);
  t.deepEqual([...(await late.list('s')).keys()].sort(), ['s/pulled', 's/pushed']);
  await pushed.release();
  t.is(leaseOf(await late.claim('s/pushed', 'meta', STOP)).inherited, 'for the next');
});

test('a Redis that comes back with what it had goes on', async (t) => {
  const {
    redis,
    nodes: [a, b],
  } = await open(t, ['a', 'b'], true);
  await a.config.write([{ key: 'x', value: 1, seen: 0 }]);
  const lease = leaseOf(await a.claim('k', 1, STOP));
  const { fence } = lease;
  await redis.kill();
  await degraded(a, b);
  await t.throwsAsync(lease.update('written meanwhile'), { instanceOf: UnavailableError });
  await redis.run();
  await connected(a, b);
  await until('what was written meanwhile', async () => (await b.ownerOf('k'))?.meta === 'written meanwhile');
  await b.config.write([{ key: 'x', value: 2, seen: b.config.entries().get('x')?.revision ?? 0 }]);
  await a.config.sync();
  t.is(a.config.entries().get('x')?.value, 2);
  t.true(lease.valid);
  t.true(lease.fence >= fence);
  t.is((await b.ownerOf('k'))?.fence, lease.fence);
});

test('claim holders without any Redis go on, for longer than the time to live, and no node takes over when it is back', async (t) => {
  // its holder asks the others before the time to live is over: also where all of them are slow
  const timing = { ...TIMING, ttl: 3 * TIMING.ttl, grace: 3 * TIMING.grace, forget: 3 * TIMING.forget };
  const {
    redis,
    nodes: [a, b, c],
  } = await open(t, ['a', 'b', 'c'], false, timing);
  const lease = leaseOf(await a.claim('k', 1, STOP));
  const start = performance.now();
  redis.pause();
  let gaps = 0;
  await until('two times to live', () => {
    if (!lease.valid) gaps += 1;
    return performance.now() - start > 2 * timing.ttl;
  });
  t.false(lease.signal.aborted);
  t.is(gaps, 0, 'it stayed valid all the time');
  await degraded(a, b, c as Cluster);
  redis.resume();
  const rival = await until('an answer', () => b.claim('k', 2, STOP).catch(() => undefined));
  t.is('owner' in rival && rival.owner.id, 'a');
  t.true(lease.valid);
});

test('a node that alone is cut off stops what may run once only; others take over; what has its own life waits', async (t) => {
  for (const how of ['cut', 'blackhole'] as const) {
    const {
      nodes: [a, b],
    } = await openCut(t, ['a', 'b']);
    const [one, two] = [a?.node, b?.node] as [Cluster, Cluster];
    const single = leaseOf(await one.claim('single', 1, STOP));
    const pushed = leaseOf(await one.claim('pushed', 1, CONTINUE));
    a?.proxy[how]();
    const over = await until('taken over', async () => {
      const claim = await two.claim('single', 2, STOP);
      if (!('lease' in claim)) return undefined;
      t.false(single.valid, 'it had ended before');
      return claim.lease;
    });
    t.true(single.signal.aborted);
    t.true(single.signal.reason instanceof LostError);
    t.true(over.fence > single.fence);
    await until('its time is over', () => !pushed.valid);
    t.is(one.state, 'degraded');
    await t.throwsAsync(one.config.write([{ key: 'x', value: 1, seen: 0 }]), { instanceOf: UnavailableError });
    t.like(await two.claim('pushed', 2, CONTINUE), { owner: { id: 'a' } });
    a?.proxy.heal();
    await connected(one);
    await until('confirmed', () => pushed.valid);
    t.false(pushed.signal.aborted);
    // nobody takes it back: b may only have lost it itself, by beating too late
    await until('it is still over there, or told as lost', () => over.valid || over.signal.aborted);
    t.false(single.valid);
  }
});

test('a node that cannot reach one that was alive does not go on without Redis', async (t) => {
  const {
    redis,
    nodes: [a],
  } = await open(t, ['a', 'b']);
  const child = await startChild(t, redis.url, 'child', 'of the child');
  const lease = leaseOf(await a.claim('k', 1, STOP));
  await until('seen', () => a.nodes().some(({ id }) => id === 'child'));
  child.process.kill('SIGKILL');
  redis.pause();
  await until('lost', () => lease.signal.aborted);
  t.true(lease.signal.reason instanceof LostError);
  t.false(lease.valid);
  redis.resume();
  await connected(a);
});

test('a process that was stopped for longer than its lease sees its loss before it acts', async (t) => {
  const {
    redis,
    nodes: [a],
  } = await open(t, ['a', 'b']);
  const { process: child, lines } = await startChild(t, redis.url, 'child', 'k');
  child.kill('SIGSTOP');
  const lease = await until('its lease has run out', async () => {
    const claim = await a.claim('k', 'mine', STOP);
    return 'lease' in claim && claim.lease;
  });
  const claimed = process.hrtime.bigint();
  await until('it is seen as lost', () => a.nodes().find(({ id }) => id === 'child')?.state === 'lost');
  child.kill('SIGCONT');
  await until('it hears of it', () => lines.includes('lost'));
  await until('it is back', () => a.nodes().find(({ id }) => id === 'child')?.state === 'ready');
  const late = lines.filter((line) => line.startsWith('act') && BigInt(line.split(' ')[2] ?? 0) > claimed);
  t.deepEqual(late, []);
  t.true(lease.valid);
  const fences = lines.filter((line) => line.startsWith('act')).map((line) => Number(line.split(' ')[1]));
  t.true(fences.every((fence) => fence < lease.fence));
  child.kill('SIGKILL');
  await once(child, 'exit');
});

test('a watcher of claims misses nothing though messages are lost', async (t) => {
  const {
    redis,
    nodes: [a, b],
  } = await open(t, ['a', 'b']);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const { owners } = mirrored(b, 'w');
  for (let n = 0; n < 60; n++) {
    if (n % 10 === 0) await raw.client('KILL', 'TYPE', 'pubsub');
    const lease = leaseOf(await a.claim(`w/${n}`, n, STOP));
    if (n % 3 === 0) await lease.release();
  }
  await raw.client('KILL', 'TYPE', 'pubsub');
  const expected = await a.list('w');
  t.is(expected.size, 40);
  await until(
    'all',
    () => owners.size === 40 && [...expected].every(([key, { meta }]) => owners.get(key)?.meta === meta),
  );
});

test('a claim of a node that died is reported as gone when its time is over', async (t) => {
  const {
    redis,
    nodes: [a],
  } = await open(t, ['a', 'b']);
  const { owners } = mirrored(a, '');
  const { process: child } = await startChild(t, redis.url, 'child', 'k');
  await until('there', () => owners.has('k'));
  t.is((await a.ownerOf('k'))?.id, 'child');
  child.kill('SIGKILL');
  await until('gone', () => !owners.has('k'));
  t.is((await a.list('')).size, 0);
  await until('shown as lost', () => a.nodes().find(({ id }) => id === 'child')?.state === 'lost');
  await until('forgotten', () => a.nodes().every(({ id }) => id !== 'child'));
});

test("a key can be had without Redis when every node that can be reached denies it; afterwards it is the cluster's", async (t) => {
  const {
    redis,
    nodes: [a, b],
  } = await open(t, ['a', 'b']);
  await redis.kill();
  await degraded(a, b);
  const lease = leaseOf(await a.claim('s/new', 'of a', CONTINUE));
  t.false(lease.valid);
  await t.throwsAsync(b.claim('s/new', 'of b', CONTINUE), { instanceOf: UnavailableError });
  await t.throwsAsync(b.claim('s/other', 'of b', STOP), { instanceOf: UnavailableError });
  await redis.run();
  await until('confirmed', () => lease.valid);
  t.like(await b.ownerOf('s/new'), { id: 'a', fence: lease.fence, meta: 'of a' });
});

test('a key that Redis has lost and its holder claims anew has one lease there', async (t) => {
  const {
    redis,
    nodes: [a],
  } = await open(t, ['a']);
  const first = leaseOf(await a.claim('k', 1, CONTINUE));
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const before = first.fence;
  await raw.del('{kiln:test}:claims', '{kiln:test}:claims:of');
  const claim = await a.claim('k', 2, CONTINUE);
  t.like(claim, { owner: { id: 'a', meta: 1 } });
  await until('the holder knows its new fence', () => first.fence > before);
  t.is((await a.ownerOf('k'))?.fence, first.fence);
  t.false(first.signal.aborted);
});

test('a Redis that came back empty hides no node that it is yet to hear of', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const timing = { ...TIMING, grace: 60_000 };
  const a = await openNode(t, 'a', { url: redis.url }, { timing });
  const b = await openNode(t, 'b', { url: `redis://127.0.0.1:${proxy.port}` }, { timing });
  await seeEachOther([a, b]);
  await redis.kill();
  proxy.cut();
  await degraded(a, b);
  await redis.run();
  await connected(a);
  t.true(a.nodes().some(({ id }) => id === 'b'));
});

test('nodes hear of a new one at once, so that they can ask it when Redis is gone', async (t) => {
  const timing = { ...TIMING, beat: 60_000, ttl: 120_000 };
  const {
    redis,
    nodes: [a],
  } = await open(t, ['a'], false, timing);
  await openNode(t, 'b', { url: redis.url }, { timing });
  t.true(await until('it is known', () => a.nodes().some(({ id }) => id === 'b')));
});

test('a node that starts without Redis asks those that were there last before it gives a key to any', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const nodesFile = join(folder, 'nodes.json');
  const {
    redis,
    nodes: [a],
  } = await open(t, ['a']);
  const start = () => openNode(t, 'b', { url: redis.url }, { nodesFile });
  const before = await start();
  await seeEachOther([a, before]);
  const fence = leaseOf(await a.claim('s/x', 1, CONTINUE)).fence;
  await before.close();
  await redis.kill();
  const again = await start();
  t.is(again.state, 'degraded');
  await t.throwsAsync(again.claim('s/x', 2, CONTINUE), { instanceOf: UnavailableError });
  t.true('lease' in (await again.claim('s/y', 2, CONTINUE)), 'a denies it');
  const stranger = await openNode(t, 'c', { url: redis.url });
  await t.throwsAsync(
    stranger.claim('s/z', 3, CONTINUE),
    { instanceOf: UnavailableError },
    'it knows of nobody to ask',
  );
  await redis.run();
  await connected(a, again, stranger);
  await until('a is still the one', async () => (await again.ownerOf('s/x'))?.id === 'a');
  t.true((await again.ownerOf('s/x'))!.fence >= fence);
});

test('a node that has not described itself yet is given nothing', async (t) => {
  const {
    redis,
    nodes: [a],
  } = await open(t, ['a']);
  const late = await openRedis({
    name: 'test',
    id: 'late',
    redis: { url: redis.url },
    file: undefined,
    onDamaged: () => {},
    onFault: () => {},
    timing: TIMING,
    port: { host: '127.0.0.1', port: 0, secrets: [SECRET] },
  });
  t.teardown(() => late.close());
  const row = () => a.nodes().find(({ id }) => id === 'late');
  await until('a hears of it', () => row() !== undefined);
  t.true(row()?.full);
  t.is(place(a.nodes())?.id, 'a');
  late.describe({ load: 0, full: false, info: {} });
  await until('a hears that it takes things', () => row()?.full === false);
});

test('a node that retires while Redis is away drains when it is back', async (t) => {
  const {
    redis,
    nodes: [a, b],
  } = await open(t, ['a', 'b']);
  await redis.kill();
  await degraded(a, b);
  void a.retire();
  await redis.run();
  await until('b hears of it', () => b.nodes().find(({ id }) => id === 'a')?.state === 'draining');
  await until('a follows', () => a.draining);
  t.is(place(b.nodes())?.id, 'b');
});

test('the last known state of other nodes survives a damaged file, and new incarnations', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const nodesFile = join(folder, 'nodes.json');
  const moved: string[] = [];
  const redis = await RedisServer.start(t);
  const address = { host: '127.0.0.1', port: freePorts(1)[0] as number, secrets: [SECRET] };
  const first = await openNode(t, 'a', { url: redis.url }, { port: address });
  const b = await openNode(t, 'b', { url: redis.url }, { nodesFile });
  await seeEachOther([first, b]);
  await first.close();
  // it is another life of a that has the key, which b has never heard of
  await redis.kill();
  await b.close();
  await writeFile(
    nodesFile,
    JSON.stringify({ version: 1, peers: [{ id: 'a', address: `http://127.0.0.1:${address.port}` }] }),
  );
  await redis.run();
  const second = await openNode(t, 'a', { url: redis.url }, { port: address });
  leaseOf(await second.claim('s/x', 1, CONTINUE));
  await redis.kill();
  const again = await openNode(t, 'b', { url: redis.url }, { nodesFile });
  await t.throwsAsync(again.claim('s/x', 2, CONTINUE), { instanceOf: UnavailableError });
  await again.close();
  for (const content of ['{', '{}', '{"version":1,"peers":[{"id":1}]}']) {
    await writeFile(nodesFile, content);
    await (
      await openNode(t, 'b', { url: redis.url }, { nodesFile, onDamaged: (movedTo) => moved.push(movedTo) })
    ).close();
  }
  t.is(moved.length, 3);
});

test('another process with the same id takes its place, and the one before hears of it', async (t) => {
  const {
    redis,
    nodes: [a, b],
  } = await open(t, ['a', 'b']);
  let replaced = false;
  a.events.on('replaced', () => (replaced = true));
  const again = await openNode(t, 'a', { url: redis.url });
  await until('replaced', () => replaced);
  await until('the other knows', () => b.nodes().find(({ id }) => id === 'a')?.incarnation === again.self.incarnation);
  t.not(again.self.incarnation, a.self.incarnation);
});

test('in a Redis that came back empty no node gets what another has held, though that one comes later', async (t) => {
  // however long it takes here until that one is back
  const timing = { ...TIMING, grace: 60_000 };
  const {
    redis,
    nodes: [a, b],
  } = await openCut(t, ['a', 'b'], timing);
  if (a === undefined || b === undefined) return t.fail();
  const pushed = leaseOf(await a.node.claim('pushed', 1, CONTINUE));
  await redis.kill();
  a.proxy.cut();
  await degraded(a.node, b.node);
  await redis.run();
  await connected(b.node);
  // one that has promised nothing, and one that may have
  const late = await openNode(t, 'c', { url: redis.url }, { timing });
  const rivals = [late.claim('pushed', 2, STOP), b.node.claim('pushed', 2, STOP)];
  await until('the rivals have asked', () => late.nodes().some(({ id }) => id === 'c'));
  a.proxy.heal();
  await until('held as before', () => pushed.valid);
  for (const claim of await Promise.all(rivals)) t.is('owner' in claim && claim.owner.id, 'a');
  t.false(pushed.signal.aborted);
});

test('a value that a holder keeps while Redis is away is inherited; a claim with a late answer loses nothing of it', async (t) => {
  const {
    redis,
    nodes: [a, b],
  } = await open(t, ['a', 'b'], true);
  const keeping = { ...CONTINUE, keepMs: 60_000 };
  const first = leaseOf(await a.claim('k', 1, keeping));
  redis.pause();
  await t.throwsAsync(first.keep('written meanwhile'), { instanceOf: UnavailableError });
  redis.resume();
  await until('renewed', () => first.valid && a.state === 'connected');
  await until('kept', async () => {
    const raw = new Redis(redis.url);
    const kept = await raw.get('{kiln:test}:kept:k');
    raw.disconnect();
    return kept !== null;
  });
  await first.release();
  redis.pause();
  await t.throwsAsync(b.claim('k', 2, { ...STOP, keepMs: 60_000 }), { instanceOf: UnavailableError });
  redis.resume();
  const next = await until('the late claim is given up', async () => {
    const claim = await a.claim('k', 3, STOP).catch(() => undefined);
    return claim !== undefined && 'lease' in claim && claim.lease;
  });
  t.is(next.inherited, 'written meanwhile');
});

test('malformed entries in Redis are skipped and reported; the rest goes on', async (t) => {
  const redis = await RedisServer.start(t);
  const faults: string[] = [];
  const [a, b] = (await Promise.all(
    ['a', 'b'].map((id) => openNode(t, id, { url: redis.url }, { onFault: ({ message }) => faults.push(message) })),
  )) as [Cluster, Cluster];
  await seeEachOther([a, b]);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const key = (name: string): string => `{kiln:test}:${name}`;
  const { owners } = mirrored(a, '');
  await a.config.write([{ key: 'x', value: 1, seen: 0 }]);
  const held = leaseOf(await a.claim('held', 1, STOP));
  for (const [at, bad] of ['', 'text', '1 {', '1 2 3 4 5 {'].entries()) {
    // together: a node without its time, or a claim of nobody, would be one that was lost
    await raw
      .multi()
      .hset(key('nodes'), `bad${at}`, bad)
      .zadd(key('nodes:heard'), Date.now(), `bad${at}`)
      .hset(key('claims'), `bad${at}`, bad)
      .zadd(key('claims:of'), 0, `life bad${at}`)
      .exec();
    await raw.zadd(key('claims:log'), await raw.incr(key('claims:revision')), `bad${at}`);
    await raw.hset(key('config'), at === 0 ? 'x' : `bad${at}`, bad || '1 {');
    await raw.zadd(key('config:log'), await raw.incr(key('config:revision')), at === 0 ? 'x' : `bad${at}`);
  }
  await b.config.write([{ key: 'y', value: 2, seen: 0 }]);
  await a.config.sync();
  t.deepEqual(Object.fromEntries([...a.config.entries()].map(([name, { value }]) => [name, value])), { x: 1, y: 2 });
  leaseOf(await b.claim('new', 2, STOP));
  await until('it is heard of', () => owners.has('new'));
  t.deepEqual([...(await a.list('')).keys()].sort(), ['held', 'new']);
  await t.throwsAsync(a.claim('bad1', 1, STOP), { instanceOf: UnavailableError });
  const since = performance.now();
  await until('longer than a lease lasts', () => performance.now() - since > 1.5 * TIMING.ttl);
  t.true(held.valid && a.state === 'connected' && b.state === 'connected');
  t.deepEqual(
    a
      .nodes()
      .map(({ id, state }) => [id, state])
      .sort(),
    [
      ['a', 'ready'],
      ['b', 'ready'],
    ],
  );
  const late = await openNode(t, 'late', { url: redis.url });
  t.deepEqual([...late.config.entries().keys()], ['y']);
  t.true(
    faults.some((message) => message.includes('malformed')),
    String(faults),
  );
});

test('a clock of Redis that is set frees nothing that is held', async (t) => {
  const redis = await RedisServer.start(t);
  const timing = { ...TIMING, ttl: 6000 };
  const [a, b] = (await Promise.all(['a', 'b'].map((id) => openNode(t, id, { url: redis.url }, { timing })))) as [
    Cluster,
    Cluster,
  ];
  await seeEachOther([a, b]);
  const lease = leaseOf(await a.claim('k', 1, STOP));
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  for (const jump of [60_000, -60_000, 3_600_000]) {
    // as if the clock had gone so far since the last script
    await raw.hincrby('{kiln:test}:clock', 'wall', -jump);
    t.like(await b.claim('k', 2, STOP), { owner: { id: 'a' } });
    t.true([...(await b.list('')).keys()].includes('k'));
    const since = performance.now();
    await until('both were heard of again', () => performance.now() - since > 3 * TIMING.beat);
    t.deepEqual(
      b.nodes().map(({ state }) => state),
      ['ready', 'ready'],
    );
    t.true(lease.valid);
  }
  const { silentMs = Infinity } = b.nodes().find(({ id }) => id === 'a') ?? {};
  t.true(silentMs < TIMING.ttl, 'time goes on as before');
  await lease.release();
  leaseOf(await b.claim('k', 2, STOP));
});

test('a key that is taken from a node that does not hear of it begins when that one has ended', async (t) => {
  const {
    nodes: [a, b],
  } = await openCut(t, ['a', 'b']);
  if (a === undefined || b === undefined) return t.fail();
  const old = leaseOf(await a.node.claim('k', 1, STOP));
  a.proxy.blackhole();
  const taken = leaseOf(await b.node.claim('k', 2, { ...STOP, take: true }));
  t.false(old.valid);
  t.true(taken.valid);
  t.true(taken.fence > old.fence);
});

/** Two nodes, each on a way of its own to Redis; the second can be started anew where it was. */
async function openRestarting(t: ExecutionContext) {
  const { redis, nodes } = await openCut(t, ['a']);
  const [{ node: a, proxy: wayOfA }] = nodes as [(typeof nodes)[0]];
  const [port] = freePorts(1) as [number];
  const start = (url: string) => openNode(t, 'b', { url }, { port: { host: '127.0.0.1', port, secrets: [SECRET] } });
  const wayOfB = await TcpProxy.open(t, redis.port);
  const b = await start(`redis://127.0.0.1:${wayOfB.port}`);
  await seeEachOther([a, b]);
  const restart = () => start(redis.url);
  return { a, b, wayOfA, wayOfB, restart };
}

test('a node that is cut off does not get a key that another has since its restart', async (t) => {
  const { a, b, wayOfA, restart } = await openRestarting(t);
  wayOfA.cut();
  await degraded(a);
  await b.close();
  const again = await restart();
  const lease = leaseOf(await again.claim('s/x', 'of b', CONTINUE));
  await t.throwsAsync(a.claim('s/x', 'of a', CONTINUE), { instanceOf: UnavailableError });
  wayOfA.heal();
  await connected(a);
  t.like(await a.ownerOf('s/x'), { id: 'b', meta: 'of b' });
  t.true(lease.valid);
});

test('a node that is cut off does not go on beside one that was lost and has come back with Redis', async (t) => {
  const { a, b, wayOfA, wayOfB, restart } = await openRestarting(t);
  const first = leaseOf(await a.claim('k', 'of a', STOP));
  wayOfB.cut();
  await until('b is cut off', () => a.nodes().some(({ id, state }) => id === 'b' && state === 'silent'));
  wayOfA.cut();
  await degraded(a);
  await b.close();
  const again = await restart();
  const second = await until('b has the key', async () => {
    const claim = await again.claim('k', 'of b', STOP);
    return 'lease' in claim && claim.lease;
  });
  t.true(second.valid);
  t.false(first.valid);
  await until('a has heard of its loss', () => first.signal.aborted);
});
