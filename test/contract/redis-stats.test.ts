import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import { Redis } from 'ioredis';
import type { Cluster, StatsRow } from '#cluster';
import { Random } from '../soak/random.ts';
import { openNode, TIMING } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

const row = (bytes: number, viewers: number): StatsRow => ({
  key: 's',
  counters: { bytes },
  gauges: { viewers },
  latest: {},
});
const sum = async (node: Cluster) => (await node.stats(['s'])).get('s');
/** A sum without what is each asker's own. */
const shared = async (node: Cluster) => {
  const { counters, gauges, maxima, latest } = (await sum(node)) ?? {};
  return { counters, gauges, maxima, latest };
};

test('sums are of all nodes; what a dead one had now leaves, what it counted stays, once', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await openNode(t, 'a', { url: redis.url });
  const b = await openNode(t, 'b:with %', { url: `redis://127.0.0.1:${proxy.port}` });
  await a.reportStats([row(100, 3)]);
  await b.reportStats([row(50, 4)]);
  t.deepEqual(await shared(a), {
    counters: { bytes: 150 },
    gauges: { viewers: 7 },
    maxima: { viewers: 7 },
    latest: {},
  });
  t.deepEqual((await sum(a))?.others, [b.self.id]);
  t.deepEqual((await sum(b))?.others, ['a']);
  t.true(await a.reportStats([row(100, 1)]));
  t.true(await b.reportStats([row(50, 5)]));
  t.is((await sum(a))?.maxima.viewers, 7, 'three and four at once, never one and six');
  proxy.cut();
  await until('its viewers left', async () => (await sum(a))?.gauges.viewers === 1);
  t.like(await sum(a), { counters: { bytes: 150 }, others: [] });
  t.false(await b.reportStats([row(50, 5)]));
  proxy.heal();
  await until('back', () => b.state === 'connected');
  // nothing changed: it is told again all the same
  await until('its viewers are back', async () => {
    await b.reportStats([row(60, 5)]);
    return (await sum(a))?.gauges.viewers === 6;
  });
  t.is((await sum(a))?.counters.bytes, 160);
});

test('the sums of what ended everywhere are gone after a while, not before', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = await Promise.all(['a', 'b'].map((id) => openNode(t, id, { url: redis.url })));
  await a?.reportStats([row(1, 1)]);
  await b?.reportStats([row(2, 2)]);
  await a?.reportStats([]);
  t.deepEqual(await shared(b as Cluster), {
    counters: { bytes: 3 },
    gauges: { viewers: 2 },
    maxima: { viewers: 3 },
    latest: {},
  });
  await a?.close();
  await b?.close();
  const c = await openNode(t, 'c', { url: redis.url });
  t.deepEqual((await sum(c))?.counters, { bytes: 3 });
});

for (const seed of [1, 2]) {
  test(`each increment counts exactly once, whatever happens to the connection (seed ${seed})`, async (t) => {
    const random = new Random(seed);
    const redis = await RedisServer.start(t);
    const nodes = await Promise.all(
      ['a', 'b'].map(async (id) => {
        const proxy = await TcpProxy.open(t, redis.port);
        return { proxy, bytes: 0, node: await openNode(t, id, { url: `redis://127.0.0.1:${proxy.port}` }) };
      }),
    );
    for (let step = 0; step < 60; step++) {
      const one = random.pick(nodes);
      one.bytes += random.below(1000);
      const report = one.node.reportStats([row(one.bytes, 1)]);
      // right after it was sent: whether it counted cannot be known
      if (random.chance(0.15)) {
        await new Promise(setImmediate);
        if (random.chance(0.5)) redis.pause();
        one.proxy.cut();
        one.proxy.heal();
      }
      await report;
      redis.resume();
      if (random.chance(0.5)) await until('connected', () => nodes.every(({ node }) => node.state === 'connected'));
    }
    const total = nodes.reduce((bytes, node) => bytes + node.bytes, 0);
    await until('everything', async () => {
      for (const { node, bytes } of nodes) await node.reportStats([row(bytes, 1)]);
      return (await sum((nodes[0] as { node: Cluster }).node).catch(() => undefined))?.counters.bytes === total;
    });
    for (const { node, bytes } of nodes) await node.reportStats([row(bytes, 1)]);
    t.is((await sum((nodes[0] as { node: Cluster }).node))?.counters.bytes, total);
  });
}

test('sums that were given up while their node was away come back whole, and those that stayed do not count twice', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await openNode(t, 'a', { url: `redis://127.0.0.1:${proxy.port}` });
  const b = await openNode(t, 'b', { url: redis.url });
  const rows = (bytes: number): StatsRow[] => [row(bytes, 1), { ...row(bytes, 1), key: 'kept' }];
  await a.reportStats(rows(100));
  await b.reportStats([{ ...row(7, 1), key: 'kept' }]);
  proxy.cut();
  await until('it is lost', async () => (await sum(b))?.gauges.viewers === undefined);
  // as Redis does by itself when nobody has had the row for half a minute
  const client = new Redis(redis.port);
  await client.del('{kiln:test}:stats:row:s');
  client.disconnect();
  proxy.heal();
  await until('told again', async () => {
    await a.reportStats(rows(120));
    return (await sum(b))?.counters.bytes === 120;
  });
  const kept = (await a.stats(['kept'])).get('kept');
  t.like(kept, {
    counters: { bytes: 127 },
    gauges: { viewers: 2 },
    own: { counters: { bytes: 120 }, gauges: { viewers: 1 } },
  });
});

test('a thousand rows of a node that left go in steps, also when it is back before they are gone', async (t) => {
  const redis = await RedisServer.start(t);
  // beats are rare: what is left after the first step stays for a while
  const timing = { ...TIMING, beat: 2000, ttl: 6000 };
  const [a, b] = (await Promise.all(['a', 'b'].map((id) => openNode(t, id, { url: redis.url }, { timing })))) as [
    Cluster,
    Cluster,
  ];
  const rows = (count: number, viewers: number): StatsRow[] =>
    Array.from({ length: count }, (_, at) => ({ ...row(1, viewers), key: `row ${at}` }));
  const keys = rows(1000, 0).map(({ key }) => key);
  const total = async (): Promise<number> =>
    [...(await b.stats(keys)).values()].reduce((sum, { gauges }) => sum + (gauges.viewers ?? 0), 0);
  await a.reportStats(rows(1000, 3));
  await b.reportStats(rows(10, 1));
  t.is(await total(), 3010);
  await a.close();
  const left = await total();
  t.true(left > 10 && left < 3010, `${left} after one step`);
  const again = await openNode(t, 'a', { url: redis.url }, { timing });
  await again.reportStats(rows(500, 2));
  await until('what it had before is gone', async () => (await total()) === 1010);
  await until('it is all told', async () => {
    await again.reportStats(rows(400, 5));
    return (await total()) === 2010;
  });
  await again.reportStats([]);
  t.is(await total(), 10);
});

test('of a thousand rows only what changed is sent, in steps that are over soon', async (t) => {
  const redis = await RedisServer.start(t);
  // of the scripts that are counted few are beats
  const timing = { ...TIMING, beat: 2000, ttl: 6000 };
  const [a, b] = (await Promise.all(['a', 'b'].map((id) => openNode(t, id, { url: redis.url }, { timing })))) as [
    Cluster,
    Cluster,
  ];
  const rows = (bytes: number): StatsRow[] =>
    Array.from({ length: 1000 }, (_, at) => ({ ...row(bytes + at, at % 3), key: `row ${at}` }));
  const client = new Redis(redis.port);
  t.teardown(() => client.disconnect());
  const scripts = async (): Promise<number> =>
    Number(/cmdstat_hmget:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
  await a.reportStats(rows(10));
  const before = await scripts();
  await a.reportStats([...rows(10).slice(0, 998), { ...row(5000, 1), key: 'row 999' }]);
  t.true((await scripts()) - before < 50, 'what is as it was is not touched');
  const sums = await b.stats(['row 5', 'row 998', 'row 999']);
  t.deepEqual(
    [...sums.values()].map(({ counters, gauges }) => [counters.bytes, gauges.viewers]),
    [
      [15, 2],
      [1008, undefined],
      [5000, 1],
    ],
  );
});

test('no statistics name a node that is gone for good, and what it counted stays', async (t) => {
  const redis = await RedisServer.start(t);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const timing = { ...TIMING, forget: 4500 };
  const a = await openNode(t, 'a', { url: redis.url }, { timing });
  const leaver = await openNode(t, 'leaver', { url: redis.url }, { timing });
  const proxy = await TcpProxy.open(t, redis.port);
  const dead = await openNode(t, 'dead', { url: `redis://127.0.0.1:${proxy.port}` }, { timing });
  for (const node of [a, leaver, dead]) await node.reportStats([row(10, 1)]);
  const traces = async () => {
    const found: string[] = [];
    for (const key of await raw.keys('*')) {
      if (/leaver|dead/.test(key)) found.push(key);
      if ((await raw.type(key)) === 'hash')
        found.push(...(await raw.hkeys(key)).filter((field) => /leaver|dead/.test(field)));
      if ((await raw.type(key)) === 'zset')
        found.push(...(await raw.zrange(key, 0, -1)).filter((member) => /leaver|dead/.test(member)));
    }
    return found;
  };
  t.true((await traces()).includes('i:leaver'));
  await leaver.close();
  proxy.cut();
  await dead.close();
  await until('no trace is left', async () => (await traces()).length === 0);
  t.deepEqual((await sum(a))?.counters, { bytes: 30 });
  t.deepEqual((await sum(a))?.gauges, { viewers: 1 });
});

test('a node that has left and is back counts what it counts, once', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const first = await openNode(t, 'b', { url: redis.url });
  for (const node of [a, first]) await node.reportStats([row(10, 1)]);
  await first.close();
  const second = await openNode(t, 'b', { url: redis.url });
  await second.reportStats([row(5, 1)]);
  // a report that begins anew, as after a time without Redis
  for (let beats = 0; beats < 3; beats++) await second.reportStats([row(7, 1)]);
  t.deepEqual((await sum(a))?.counters, { bytes: 27 });
});

test("bytes in the cluster's sums count once when Redis loses other data, or comes back older", async (t) => {
  const redis = await RedisServer.start(t);
  const raw = new Redis(redis.url);
  raw.on('error', () => {});
  t.teardown(() => raw.disconnect());
  const [a, b] = [await openNode(t, 'a', { url: redis.url }), await openNode(t, 'b', { url: redis.url })];
  const opened = () =>
    until('both have what is there', async () => {
      const [epoch] = (await raw.hget('{kiln:test}:epoch', 'config'))?.split(' ') ?? [];
      return [a, b].every(({ config }) => config.position.startsWith(`${epoch}.`));
    });
  await opened();
  for (const node of [a, b]) await node.reportStats([row(10, 1)]);
  const before = await raw.hget('{kiln:test}:epoch', 'id');
  await raw.del('{kiln:test}:claims');
  await until('restored', async () => (await raw.hget('{kiln:test}:epoch', 'id')) !== before);
  await opened();
  const report = async () => {
    for (const node of [a, b]) await node.reportStats([row(15, 1)]);
    const { counters, gauges } = (await sum(a)) ?? {};
    return { counters, gauges };
  };
  const expected = { counters: { bytes: 30 }, gauges: { viewers: 2 } };
  // a node learns with its next beat that it has to tell everything
  await until('both have told', async () => isDeepStrictEqual(await report(), expected));
  t.deepEqual(await report(), expected);
});

test('statistics that a node no longer has are not counted when Redis comes back older', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = [await openNode(t, 'a', { url: redis.url }), await openNode(t, 'b', { url: redis.url })];
  const moved: StatsRow = { ...row(5, 1), key: 'moved' };
  const quiet = (viewers: number): StatsRow => ({ ...row(5, viewers), key: 'quiet' });
  await b.reportStats([moved, quiet(4)]);
  const raw = new Redis(redis.url);
  raw.on('error', () => {});
  t.teardown(() => raw.disconnect());
  await raw.save();
  await b.reportStats([quiet(0)]);
  await a.reportStats([moved]);
  await redis.kill();
  await until('degraded', () => [a, b].every(({ state }) => state === 'degraded'));
  await redis.run();
  await until('back', () => [a, b].every(({ state }) => state === 'connected'));
  const gauges = async (key: string) => (await a.stats([key])).get(key)?.gauges;
  let sums: unknown[] = [];
  await until('the sums are those of now', async () => {
    await a.reportStats([moved]);
    await b.reportStats([quiet(0)]);
    sums = await Promise.all(['moved', 'quiet'].map(gauges));
    return isDeepStrictEqual(sums, [{ viewers: 1 }, {}]);
  });
  t.deepEqual(sums, [{ viewers: 1 }, {}]);
});

test('a node that Redis has forgotten, and that is back, counts what it counts, once', async (t) => {
  const redis = await RedisServer.start(t);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const timing = { ...TIMING, forget: 4500 };
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await openNode(t, 'a', { url: redis.url }, { timing });
  const b = await openNode(t, 'b', { url: `redis://127.0.0.1:${proxy.port}` }, { timing });
  const alone = (bytes: number): StatsRow => ({ ...row(bytes, 0), key: 'alone' });
  await a.reportStats([row(10, 1)]);
  await b.reportStats([row(10, 1), alone(1)]);
  proxy.cut();
  await until('forgotten', async () => {
    // as if it did not answer that it lives
    await raw.hset('{kiln:test}:nodes:fate', 'b', 'gone');
    return a.nodes().length === 1;
  });
  await until('without traces', async () => (await sum(a))?.gauges.viewers === 1);
  proxy.heal();
  await until('back', () => b.state === 'connected');
  await until('it counts again', async () => {
    await b.reportStats([row(15, 1), alone(2)]);
    return (await sum(a))?.gauges.viewers === 2;
  });
  t.deepEqual((await sum(a))?.counters, { bytes: 25 });
  t.deepEqual((await a.stats(['alone'])).get('alone')?.counters, { bytes: 2 });
});
