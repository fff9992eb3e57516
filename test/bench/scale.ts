import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Program } from '../support/load/program.ts';
import type { HoldCommands } from '../support/load/programs/hold-claims.ts';
import { cpuOf } from '../support/redis/redis-cpu.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { timingOf } from '../../cluster/redis/timing.ts';
import { SEGMENTS_PER_SAVE } from '../../src/publishers/hls/local/saved-state.ts';
import { STREAM_EVERY_MS } from '../../src/stats/node-counts.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { installed } from './wrk.ts';

type Owner = Parameters<typeof RedisServer.start>[0];
type Fit = readonly [fixed: number, each: number];
type Takes = Readonly<Record<string, number>>;

/** What a cluster is to carry. */
const NODES = 100;
const STREAMS = 100_000;
const VIEWERS = 1_000_000;
const CHANGES = 50;
/** How long a viewer stays. */
const STAY_S = 1200;
/** How often a node reports each stream that it has or plays. */
const REPORT_S = STREAM_EVERY_MS / 1000;
/** How often a stream that is packaged keeps something for its next owner, with segments of 6 s. */
const KEEP_S = 6 * SEGMENTS_PER_SAVE;
/** Share of a core that Redis may take, how long a storm of connections may last, and what a node knows of the others' streams. */
const MOST_CORE = 0.5;
const MOST_STORM_MS = 3000;
const MOST_MIB = 60;

const PROCESSES = 4;
/** Sizes that are measured. */
const NODE_COUNTS = [12, 24, 48];
const STORM_NODES = 20;
const CLAIM_COUNTS = [5000, 10_000, 20_000];
/**
 * Rows of statistics that each node reports in a second: of viewers who come and go, each at another node than others of the same
 * stream, which no cluster does worse, and of what goes on, by its owner and where a viewer stays.
 */
const VISITS = Math.round(VIEWERS / STAY_S / NODES);
const ROWS = Math.round(STREAMS / REPORT_S / NODES) + VISITS * (Math.ceil(STAY_S / REPORT_S) - 1);
/** The least of so many runs counts: what else the machine does only adds to it. */
const RUNS = 2;
const WINDOW_MS = 3000;
const SETTLE_MS = 1500;
/** Of each node in a second: as many as it keeps of its part of the streams. */
const KEEPS = STREAMS / NODES / KEEP_S;
const PINGS = 2000;
/** The nodes are asked to wait for the storm before it comes. */
const LEAD_MS = 100;
const MIB = 1024 * 1024;

/** What Redis and each node have to do for a cluster of many nodes and streams: less is measured, and the growth extrapolated. */
export const scale: Measurement = {
  name: 'scale',
  run: async () => {
    if (!installed('redis-server')) return [{ what: 'scale', measured: 'skipped: redis-server is not installed' }];
    const endings: (() => unknown)[] = [];
    const owner = { teardown: (end: () => unknown) => void endings.push(end) };
    try {
      return [...(await costsOfRedis(owner)), ...(await storms(owner))];
    } finally {
      for (const end of endings.toReversed()) await end();
    }
  },
};

/** Some processes of nodes at a Redis of their own. */
class Fleet {
  readonly #redis: RedisServer;
  readonly #programs: readonly Program<HoldCommands>[];
  readonly admin: Redis;
  #nodes = 0;
  #claims = 0;

  private constructor(owner: Owner, redis: RedisServer) {
    this.#redis = redis;
    this.admin = new Redis(redis.url);
    this.#programs = Array.from({ length: PROCESSES }, () => new Program<HoldCommands>('hold-claims.ts'));
    owner.teardown(async () => {
      this.admin.disconnect();
      await Promise.all(this.#programs.map((program) => program.stop()));
    });
  }

  static async start(owner: Owner): Promise<Fleet> {
    return new Fleet(owner, await RedisServer.start(owner));
  }

  async grow(nodes: number): Promise<void> {
    const count = (nodes - this.#nodes) / PROCESSES;
    await Promise.all(
      this.#programs.map((program, at) =>
        program.ask('open', { url: this.#redis.url, from: this.#nodes + at * count, count }),
      ),
    );
    await this.each((program) => program.ask('see', nodes));
    this.#nodes = nodes;
    await delay(SETTLE_MS);
  }

  async claim(claims: number): Promise<void> {
    const count = (claims - this.#claims) / PROCESSES;
    await Promise.all(
      this.#programs.map((program, at) => program.ask('claim', { from: this.#claims + at * count, count })),
    );
    this.#claims = claims;
    await delay(SETTLE_MS);
  }

  each<T>(ask: (program: Program<HoldCommands>) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#programs.map(ask));
  }

  /** Redis' CPU time in microseconds for each of what is done, without what it takes anyway. @param act answers how often */
  costOfEach(idlePerMs: number, act: (program: Program<HoldCommands>) => Promise<number>): Promise<number> {
    return least(async () => {
      const begun = performance.now();
      let times = 0;
      const used = await cpuOf(this.admin, async () => {
        times = (await this.each(act)).reduce((sum, count) => sum + count, 0);
      });
      return (used - idlePerMs * (performance.now() - begun)) / times;
    });
  }

  /** All connections are closed by Redis. @returns milliseconds until every node is whole again */
  async storm(): Promise<number> {
    const mended = this.each((program) => program.ask('mend', undefined));
    await delay(LEAD_MS);
    const begun = Date.now();
    await this.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await this.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    return Math.max(...(await mended)) - begun;
  }

  /** Heap that a node of its own takes for what it knows, in bytes. */
  async heapOfStranger(): Promise<number> {
    const program = new Program<HoldCommands>('hold-claims.ts');
    try {
      const before = await program.ask('heap', undefined);
      await program.ask('open', { url: this.#redis.url, from: this.#nodes, count: 1 });
      const { fewest } = await program.ask('count', undefined);
      if (fewest !== this.#claims) throw new Error(`a new node knows of ${fewest} claims, not ${this.#claims}`);
      const after = await program.ask('heap', undefined);
      await program.ask('close', undefined);
      return after - before;
    } finally {
      await program.stop();
    }
  }
}

async function costsOfRedis(owner: Owner): Promise<Line[]> {
  const fleet = await Fleet.start(owner);
  const { beat } = timingOf();
  const beats: number[] = [];
  const changes: number[] = [];
  const keeps: number[] = [];
  const reports: number[] = [];
  const alone = await perMs(fleet.admin);
  for (const count of NODE_COUNTS) {
    await fleet.grow(count);
    if (beats.length === 0) await fleet.claim(PROCESSES * 100);
    const idle = await perMs(fleet.admin);
    beats.push(((idle - alone) * beat) / count);
    const pace = { rate: CHANGES / PROCESSES, ms: WINDOW_MS };
    changes.push(await fleet.costOfEach(idle, (program) => program.ask('change', pace)));
    if (count > (NODE_COUNTS[0] as number)) continue;
    const often = { rate: (KEEPS * count) / PROCESSES, ms: WINDOW_MS };
    keeps.push(await fleet.costOfEach(idle, (program) => program.ask('keep', often)));
    const report = (ms: number) => (program: Program<HoldCommands>) =>
      program.ask('report', { rows: ROWS, visits: VISITS, ms });
    // until rows end as fast as others begin
    await fleet.each(report(SETTLE_MS));
    reports.push(await fleet.costOfEach(idle, report(WINDOW_MS)));
  }
  const ping = await cpuOf(fleet.admin, async () => {
    for (let n = 0; n < PINGS; n++) await fleet.admin.ping();
  });
  const line = (name: string, costs: readonly number[]): Line => ({
    what: `Redis' CPU for ${name}`,
    measured: `${costs.map((cost) => number(cost)).join(' / ')} us`,
    reference: `PING ${number(ping / PINGS)} us`,
  });
  const [perBeat, perChange] = [fitted(NODE_COUNTS, beats), fitted(NODE_COUNTS, changes)];
  const sizes = NODE_COUNTS.join(' / ');
  const ofNodes = {
    beats: (at(perBeat, NODES) * NODES * 1000) / beat,
    changes: at(perChange, NODES) * CHANGES,
  };
  const ofStreams = {
    'reports of statistics': ((reports[0] as number) * VIEWERS) / STAY_S / VISITS,
    'kept values': ((keeps[0] as number) * STREAMS) / KEEP_S,
  };
  const all = sum({ ...ofNodes, ...ofStreams });
  return [
    line(`a beat among ${sizes} nodes`, beats),
    line(`a change of a claim that ${sizes} nodes hear of`, changes),
    line('a value that is kept for the next owner', keeps),
    line(`a report of statistics: ${ROWS} rows that go on, ${VISITS} that begin and ${VISITS} that end`, reports),
    shares(`${NODES} nodes, ${CHANGES} changes of claims a second`, ofNodes),
    shares(
      `${number(STREAMS)} packaged streams, ${number(VIEWERS)} viewers who stay for ${STAY_S / 60} min`,
      ofStreams,
    ),
    {
      what: 'Redis in all: extrapolated',
      measured: `${percent(all)} of a core`,
      budget: `<= ${number(100 * MOST_CORE)} %`,
      met: all <= MOST_CORE * 1e6,
    },
  ];
}

/** @param takes microseconds of Redis in a second, by what they are for */
function shares(what: string, takes: Takes): Line {
  return {
    what: `Redis with ${what}: extrapolated`,
    measured: `${percent(sum(takes))} of a core`,
    reference: Object.entries(takes)
      .map(([name, us]) => `${name} ${percent(us)}`)
      .join(', '),
  };
}

function sum(takes: Takes): number {
  return Object.values(takes).reduce((all, us) => all + us, 0);
}

function percent(us: number): string {
  return `${number(us / 1e4, 1)} %`;
}

async function storms(owner: Owner): Promise<Line[]> {
  const fleet = await Fleet.start(owner);
  await fleet.grow(STORM_NODES);
  const times: number[] = [];
  const heaps: number[] = [];
  let lost = 0;
  for (const claims of CLAIM_COUNTS) {
    await fleet.claim(claims);
    times.push(await fleet.storm());
    const counts = await fleet.each((program) => program.ask('count', undefined));
    lost = Math.max(lost, claims - counts.reduce((sum, { held }) => sum + held, 0));
    lost = Math.max(lost, claims - Math.min(...counts.map(({ fewest }) => fewest)));
    heaps.push(await fleet.heapOfStranger());
  }
  const mib = at(fitted(CLAIM_COUNTS, heaps), STREAMS) / MIB;
  const [last = Infinity] = times.slice(-1);
  const sizes = CLAIM_COUNTS.map((count) => number(count)).join(' / ');
  return [
    {
      what: `${STORM_NODES} nodes lose all connections, ${sizes} claims: until all are whole`,
      measured: `${times.map((time) => number(time)).join(' / ')} ms`,
      reference: `${number(lost)} claims lost`,
      budget: `<= ${number(MOST_STORM_MS)} ms`,
      met: last <= MOST_STORM_MS && lost === 0,
    },
    {
      what: `heap of a node that knows of ${sizes} streams of others`,
      measured: `${heaps.map((heap) => number(heap / MIB, 1)).join(' / ')} MiB`,
      reference: `${number(STREAMS)} streams: ${number(mib, 1)} MiB`,
      budget: `<= ${number(MOST_MIB)} MiB`,
      met: mib <= MOST_MIB,
    },
  ];
}

/** What Redis takes of a CPU in a millisecond while nothing is asked of the nodes, in microseconds. */
function perMs(admin: Redis): Promise<number> {
  return least(async () => {
    const begun = performance.now();
    const used = await cpuOf(admin, () => delay(WINDOW_MS));
    return used / (performance.now() - begun);
  });
}

async function least(measure: () => Promise<number>): Promise<number> {
  let lowest = Infinity;
  for (let run = 0; run < RUNS; run++) lowest = Math.min(lowest, await measure());
  return lowest;
}

/** The straight line nearest to what was measured. */
function fitted(sizes: readonly number[], values: readonly number[]): Fit {
  const mean = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0) / list.length;
  const [x, y] = [mean(sizes), mean(values)];
  const moments = sizes.map((size, at) => [(size - x) * ((values[at] as number) - y), (size - x) ** 2] as const);
  const each = mean(moments.map(([both]) => both)) / mean(moments.map(([, square]) => square));
  return [y - each * x, each];
}

function at([fixed, each]: Fit, size: number): number {
  return fixed + each * size;
}
