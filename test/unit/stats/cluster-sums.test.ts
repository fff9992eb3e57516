import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Cluster, StatsRow } from '#cluster';
import { Registry } from '../../../src/core/registry.ts';
import { serverPlace, streamPlace } from '../../../src/stats/places.ts';
import { addVhost, goLive } from '../../support/server/live.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { sharedStatistics } from '../../support/cluster/shared-statistics.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const EMPTY = { counters: undefined, gauges: undefined, maxima: undefined };
const row = (bytes: number, viewers: number): StatsRow => ({
  key: 's',
  counters: { bytes },
  gauges: { viewers },
  latest: {},
});
const sum = async (node: Cluster) => {
  const { counters, gauges, maxima } = (await node.stats(['s'])).get('s') ?? EMPTY;
  return { bytes: counters?.bytes, viewers: gauges?.viewers, most: maxima?.viewers };
};

async function open(t: ExecutionContext, seed: number) {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, seed);
  const [a, b] = [await cluster.open('a'), await cluster.open('b')];
  await until('they know each other', () => [a, b].every((node) => node.nodes().length === 2));
  return { cluster, a, b };
}

test.serial(
  'a node that dies takes its gauges along; what it counted stays, and its next life adds to it',
  async (t) => {
    const { cluster, a, b } = await open(t, 1);
    await a.reportStats([row(100, 3)]);
    await b.reportStats([row(50, 4)]);
    t.deepEqual(await sum(a), { bytes: 150, viewers: 7, most: 7 });
    cluster.kill('b');
    await until('its viewers left', async () => (await sum(a)).viewers === 3);
    t.deepEqual(await sum(a), { bytes: 150, viewers: 3, most: 7 });
    const next = await cluster.open('b');
    t.deepEqual(await sum(next), { bytes: 150, viewers: 3, most: 7 });
    await next.reportStats([row(20, 5)]);
    t.deepEqual(await sum(a), { bytes: 170, viewers: 8, most: 8 });
  },
);

test.serial('a node that leaves, and one whose id another process takes, counts once', async (t) => {
  const { cluster, a, b } = await open(t, 2);
  await a.reportStats([row(100, 3)]);
  await b.reportStats([row(50, 4)]);
  const replacing = await cluster.open('b');
  t.deepEqual(await sum(a), { bytes: 150, viewers: 3, most: 7 });
  await replacing.reportStats([row(5, 1)]);
  t.deepEqual(await sum(a), { bytes: 155, viewers: 4, most: 7 });
  await replacing.close();
  t.deepEqual(await sum(a), { bytes: 155, viewers: 3, most: 7 });
});

test.serial(
  'a node that was cut off for long is back with its gauges, and with only what it counted since',
  async (t) => {
    const { cluster, a, b } = await open(t, 3);
    await a.reportStats([row(100, 3)]);
    await b.reportStats([row(50, 4)]);
    cluster.cutStore(['b']);
    await until('its viewers left', async () => (await sum(a)).viewers === 3);
    t.is((await sum(a)).bytes, 150);
    await b.reportStats([row(55, 4)]);
    t.is((await sum(a)).bytes, 150);
    cluster.heal();
    await until('it is back', () => b.state === 'connected');
    await b.reportStats([row(60, 4)]);
    t.deepEqual(await sum(a), { bytes: 160, viewers: 7, most: 7 });
  },
);

for (const seed of [11, 12, 13]) {
  test.serial(`each byte counts once, whatever is lost between the nodes and the store: seed ${seed}`, async (t) => {
    virtualTime(t);
    const cluster = MemoryCluster.create(t, seed);
    const { random, network } = cluster;
    const nodes = await Promise.all(
      ['a', 'b', 'c'].map(async (id) => ({ id, node: await cluster.open(id), bytes: 0 })),
    );
    for (let step = 0; step < 80; step++) {
      const one = random.pick(nodes);
      one.bytes += random.below(1000);
      network.loss = random.chance(0.3) ? 0.3 : 0;
      const cut = random.chance(0.2);
      if (cut) cluster.cutStore([one.id]);
      await one.node.reportStats([row(one.bytes, 1)]);
      if (cut) await delay(random.below(5000));
      cluster.heal();
    }
    const total = nodes.reduce((bytes, one) => bytes + one.bytes, 0);
    await until('all are back', () => nodes.every(({ node }) => node.state === 'connected'));
    for (const { node, bytes } of nodes) await node.reportStats([row(bytes, 1)]);
    for (const { node } of nodes) t.like(await sum(node), { bytes: total, viewers: 3 });
  });
}

test.serial('any node reports the traffic of all, and goes on by itself without the store', async (t) => {
  const { cluster, a, b } = await open(t, 4);
  const begin = (node: Cluster) => {
    const registry = new Registry();
    addVhost(registry);
    const statistics = sharedStatistics(t, node, registry);
    const { input } = goLive(registry, 'app', node.self.id);
    return { input, read: () => statistics.read(serverPlace(registry)) };
  };
  const [here, there] = [begin(a), begin(b)];
  here.input.counters.received(1000);
  there.input.counters.received(200);
  const total = async ({ read }: typeof here): Promise<number> => (await read()).counted.in.totalBytes;
  await until('each counts both', async () => (await total(here)) === 1200 && (await total(there)) === 1200);
  t.is((await here.read()).counted.providers.rtmp, 2);
  cluster.kill('b');
  await until('its publisher is gone', async () => (await here.read()).counted.providers.rtmp === 1);
  t.is(await total(here), 1200);
  cluster.cutStore();
  await until('it is cut off', () => a.state === 'degraded');
  here.input.counters.received(5);
  t.like(await here.read(), { stale: true, counted: { in: { totalBytes: 1005 } } });
  cluster.heal();
  await until('it is back', async () => (await total(here)) === 1205);
  t.false((await here.read()).stale);
});

test.serial('a stream is reported when viewers come and go, and when another node is asked for it', async (t) => {
  const { cluster, a, b } = await open(t, 5);
  const begin = (node: Cluster) => {
    const registry = new Registry();
    addVhost(registry);
    const statistics = sharedStatistics(t, node, registry);
    const place = () => streamPlace(registry.vhost('default').application('app'), 's');
    return { registry, place, read: () => statistics.read(place()) };
  };
  const [here, there] = [begin(a), begin(b)];
  const told = async () => {
    const { key } = there.place();
    const { counters = {}, gauges = {} } = (await b.stats([key])).get(key) ?? {};
    return { bytes: counters.in, viewers: gauges['publisher.webrtc'] ?? 0 };
  };
  const output = goLive(there.registry, 'app', 's');
  const { counters } = output.input;
  await until('it is known', async () => (await told()).bytes === 0);
  counters.received(700);
  await delay(10_000);
  t.is((await told()).bytes, 0, 'nobody wants to know');
  t.like(await here.read(), { stale: false, counted: { in: { totalBytes: 700 }, providers: { rtmp: 1 } } });
  t.is((await told()).bytes, 700);

  counters.received(1);
  const leave = counters.viewer('webrtc');
  await until('the viewer is told', async () => (await told()).viewers === 1);
  t.is((await told()).bytes, 701);
  leave();
  await until('the viewer left', async () => (await told()).viewers === 0);
  counters.received(1);
  cluster.split(['a'], ['b']);
  t.like(await here.read(), { stale: true, counted: { in: { totalBytes: 701 } } }, 'as it was reported last');
  cluster.heal();
  await until('all of it', async () => (await here.read()).counted.in.totalBytes === 702);
  cluster.cutStore(['b']);
  counters.received(1);
  // what was asked just now is not asked again
  await delay(1000);
  t.like(await here.read(), { stale: true, counted: { in: { totalBytes: 702 } } }, 'it cannot report');
  cluster.heal();
  await until('it can again', async () => (await here.read()).counted.in.totalBytes === 703);
  output.input.close('over');
  await until('its end', async () => (await here.read()).counted.providers.rtmp === 0);
  t.like(await here.read(), { stale: false, counted: { in: { totalBytes: 703 } } });
});
