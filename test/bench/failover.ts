import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { openNode, TIMING } from '../support/cluster/cluster.ts';
import { SCRIPTS } from '../../cluster/redis/scripts.ts';
import { timingOf } from '../../cluster/redis/timing.ts';
import { Hosts, type Host } from '../support/network/hosts.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { median } from '../support/load/statistics.ts';
import { MovingPublisher } from '../support/rtmp/moving-publisher.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { Origin } from '../support/ovt/origin.ts';
import { OvtViewer } from '../support/ovt/ovt-viewer.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { cpuOf } from '../support/redis/redis-cpu.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';
import { atMost, number, type Line, type Measurement } from './measurement.ts';
import { installed } from './wrk.ts';

type Owner = Parameters<typeof usedRedis>[0];

/** Id, time, microseconds and command of each. */
type SlowLog = readonly (readonly [number, number, number, readonly string[]])[];

interface Bench {
  readonly owner: Owner;
  readonly nodes: readonly Kiln[];
  readonly store: Redis;
}

const ROUNDS = 5;
const IDS = ['a', 'b', 'c'];
const STREAMS = '/v1/vhosts/default/apps/app/streams';
/** Packets after which a stream plays again, and not only what was left of it. */
const PLAYS = 25;
/** Of the test's picture: two frames. */
const GOP_MS = 80;
/** Of a node's lease. */
const TTL_MS = timingOf().ttl;
const RETRY_MS = 200;
const CLAIMS = 200;
/** How long beats are counted. */
const BEATS_MS = 4000;
const PINGS = 2000;

/** How long media and names are away when a node dies or is drained, and what it costs Redis that nodes tell they live. */
export const failover: Measurement = {
  name: 'failover',
  run: async () => {
    if (!installed('redis-server')) return [{ what: 'failover', measured: 'skipped: redis-server is not installed' }];
    const endings: (() => unknown)[] = [];
    const owner = { teardown: (end: () => unknown) => void endings.push(end) };
    try {
      return [await beatCost(owner), ...(await failovers(owner)), ...(await hostDeaths(owner))];
    } finally {
      for (const end of endings.toReversed()) await end();
    }
  },
};

/**
 * What one beat takes of Redis' CPU time, with all that comes of it, beside what a PING takes: reading it, executing it and
 * writing the answer. What Redis itself notes of a command is its execution alone, which of a PING is next to nothing.
 */
async function beatCost(owner: Owner): Promise<Line> {
  const redis = await RedisServer.start(owner);
  const admin = new Redis(redis.url);
  owner.teardown(() => admin.disconnect());
  const idle = await cpuOf(admin, () => delay(BEATS_MS));
  const nodes = await Promise.all(IDS.map((id) => openNode(owner, id, { url: redis.url })));
  await until('all see each other', () => nodes.every((node) => node.nodes().length === nodes.length));
  for (const node of nodes)
    for (let n = 0; n < CLAIMS; n++) await node.claim(`${node.self.id}/${n}`, 1, { silence: 'continue' });
  await delay(2 * TIMING.beat);
  await admin.config('SET', 'slowlog-log-slower-than', 0, 'slowlog-max-len', 100_000);
  const busy = await cpuOf(admin, () => delay(BEATS_MS));
  const log = (await admin.slowlog('GET', 100_000)) as SlowLog;
  const beats = log.filter(([, , , args]) => args[1] === SCRIPTS.beat.hash).length;
  const usec = (busy - idle) / beats;
  const pings = async (): Promise<void> => {
    for (let n = 0; n < PINGS; n++) await admin.ping();
  };
  await admin.config('SET', 'slowlog-log-slower-than', -1);
  await Promise.all(nodes.map((node) => node.close()));
  const ping = (await cpuOf(admin, pings)) / PINGS;
  return {
    what: `Redis' CPU time for a beat of a node with ${CLAIMS} claims, ${nodes.length} nodes`,
    measured: `${number(usec)} us, ${number(usec / ping)} PINGs`,
    reference: `PING ${number(ping)} us`,
  };
}

async function failovers(owner: Owner): Promise<Line[]> {
  const bench = await open(owner);
  const gaps = { killed: [] as number[], accepted: [] as number[], drained: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    const { gap, accepted } = await die(bench, `pushed${round}`, (at) => bench.nodes[at]?.signal('SIGKILL'));
    gaps.killed.push(gap);
    gaps.accepted.push(accepted);
    gaps.drained.push(await drain(bench));
  }
  return [
    line('kill -9 of the node that pulls: gap for a viewer of another node', gaps.killed, 1000 + GOP_MS),
    line('kill -9 of the node published to: until another node takes the publisher', gaps.accepted, 500),
    line('drain of the node that pulls: gap for a viewer of another node', gaps.drained, 200 + GOP_MS),
    line(
      'drain of the node published to, ReconnectRequest: gap for a viewer elsewhere',
      await moves(bench),
      200 + MovingPublisher.GOP_MS,
    ),
  ];
}

/** Hosts that are gone without a word: what is sent to them is dropped, and nothing is refused. */
async function hostDeaths(owner: Owner): Promise<Line[]> {
  if (!Hosts.possible) return [{ what: 'death of a host', measured: 'skipped: no network namespaces' }];
  const hosts = Hosts.open(owner, IDS.length);
  const bench = await open(owner, hosts);
  const gaps = { played: [] as number[], accepted: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    const { gap, accepted } = await die(
      bench,
      `pushed${round}`,
      (at) => hosts.cut(hosts.all[at] as Host),
      (at) => hosts.heal(hosts.all[at] as Host),
    );
    gaps.played.push(gap);
    gaps.accepted.push(accepted);
  }
  return [
    line('death of the host that pulls: gap for a viewer of another one', gaps.played, TTL_MS + 1000),
    line('death of the host published to: until another one takes the publisher', gaps.accepted, TTL_MS + 1000),
  ];
}

function line(what: string, values: readonly number[], budget: number): Line {
  return atMost({
    what,
    unit: 'ms',
    digits: 0,
    values: [median(values)],
    budget: [budget],
    reference: `median of ${ROUNDS}; longest ${number(Math.max(...values))} ms`,
  });
}

/** Nodes one of which pulls a stream, on hosts of their own where there are any. */
async function open(owner: Owner, hosts?: Hosts): Promise<Bench> {
  const origin = await Origin.on(owner, hosts?.here, 'src');
  const redis = await usedRedis(owner, hosts && { address: hosts.here.address });
  const nodes = await Promise.all(
    IDS.map((id, at) => startNode(owner, redis, id, { ovt: true, host: hosts?.all[at] })),
  );
  await allReady(nodes);
  const made = await nodes[0]?.api(STREAMS, 'POST', {
    name: 'copy',
    urls: [origin.url('src')],
    properties: { relay: true, persistent: true },
  });
  if (made?.status !== 201) throw new Error(`the pull was answered ${made?.status}`);
  const store = new Redis(redis.url);
  owner.teardown(() => store.disconnect());
  await until('a node pulls', async () => (await puller(store)) >= 0);
  return { owner, nodes, store };
}

/**
 * Ends the node that pulls, to which another stream is published; its encoder goes to another node.
 * @param end how it dies @param revive what has to be undone of that before it is started again
 */
async function die(
  { owner, nodes, store }: Bench,
  name: string,
  end: (at: number) => void,
  revive: (at: number) => void = () => {},
): Promise<{ gap: number; accepted: number }> {
  const at = await puller(store);
  const [dead, other] = [nodes[at] as Kiln, nodes[(at + 1) % nodes.length] as Kiln];
  const viewer = await watched(owner, other);
  const before = await PictureClient.publish(dead, name);
  await other.liveStream(name);
  const moment = performance.now();
  end(at);
  const after = await accepted(other, name);
  const acceptedAfter = performance.now() - moment;
  const gap = await resumed(viewer, moment, store, at);
  before.close();
  after.close();
  dead.signal('SIGKILL');
  await dead.exited();
  revive(at);
  await dead.restart();
  await allReady(nodes);
  return { gap, accepted: acceptedAfter };
}

async function drain({ owner, nodes, store }: Bench): Promise<number> {
  const at = await puller(store);
  const other = nodes[(at + 1) % nodes.length] as Kiln;
  const viewer = await watched(owner, other);
  const moment = performance.now();
  await other.api(`/v1/cluster/nodes/${IDS[at]}:drain`, 'POST');
  const gap = await resumed(viewer, moment, store, at);
  await other.api(`/v1/cluster/nodes/${IDS[at]}:undrain`, 'POST');
  await allReady(nodes);
  return gap;
}

/** Drains the node that a publisher is on who can be asked to reconnect, again and again. */
async function moves({ owner, nodes }: Bench): Promise<number[]> {
  let at = 0;
  const publisher = await MovingPublisher.start('moved', () => (nodes[at] as Kiln).ports.rtmp);
  owner.teardown(() => publisher.close());
  const gaps: number[] = [];
  while (gaps.length < ROUNDS) {
    const viewed = nodes[(at + 2) % nodes.length] as Kiln;
    await viewed.liveStream('moved');
    const viewer = await OvtViewer.play(owner, viewed.ovtUrl('moved'));
    await until('it plays', () => viewer.arrivals.length >= PLAYS);
    const drained = IDS[at] as string;
    at = (at + 1) % nodes.length;
    const moment = performance.now();
    await viewed.api(`/v1/cluster/nodes/${drained}:drain`, 'POST');
    await until('the publisher has moved', () => publisher.moves > gaps.length);
    const moved = performance.now();
    await until('it plays again', () => viewer.since(moved) >= PLAYS);
    gaps.push(viewer.gapSince(moment));
    viewer.close();
    await viewed.api(`/v1/cluster/nodes/${drained}:undrain`, 'POST');
    await allReady(nodes);
  }
  return gaps;
}

async function accepted(node: Kiln, name: string): Promise<PictureClient> {
  for (;;) {
    const client = await PictureClient.publish(node, name).catch(() => undefined);
    if (client !== undefined) return client;
    await delay(RETRY_MS);
  }
}

async function watched(owner: Owner, node: Kiln): Promise<OvtViewer> {
  const viewer = await OvtViewer.play(owner, node.ovtUrl('copy'));
  await until('it plays', () => viewer.arrivals.length >= PLAYS);
  return viewer;
}

/** @returns the longest time without media since the moment, in milliseconds, when it plays from another node than before */
async function resumed(viewer: OvtViewer, moment: number, store: Redis, before: number): Promise<number> {
  await until('another node pulls', async () => ![before, -1].includes(await puller(store)));
  const known = performance.now();
  await until('it plays again', () => viewer.since(known) >= PLAYS);
  return viewer.gapSince(moment);
}

/** The place of the node that pulls, in the order of their ids; -1 when there is none. */
async function puller(store: Redis): Promise<number> {
  const claim = (await store.hget('{kiln:kiln}:claims', 'stream/default/app/copy')) ?? '';
  return IDS.indexOf(claim.split(' ')[2] ?? '');
}

async function allReady(nodes: readonly Kiln[]): Promise<void> {
  for (const node of nodes) await untilStates(node, Object.fromEntries(IDS.map((id) => [id, 'ready'])));
}
