import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { joinKey, openRedis, type Cluster, type Json, type Lease, type StatsRow } from '#cluster';
import { serve } from '../program.ts';
import { until } from '../../time/until.ts';

interface Span {
  readonly from: number;
  readonly count: number;
}

interface Rows {
  readonly rows: number;
  readonly visits: number;
  readonly ms: number;
}

interface Pace {
  /** In a second, of all nodes of this process together. */
  readonly rate: number;
  readonly ms: number;
}

/** So many claims are asked for at once. */
const AT_ONCE = 50;
const TICK_MS = 20;

const nodes: Cluster[] = [];
const leases: Lease[] = [];
/** Seconds of reports of statistics. */
let ticks = 0;

const metaOf = (n: number): Json => ({
  live: true,
  created: 1763855935123 + n,
  generation: 1763855930000,
  outputs: [`stream-${n}`],
});

const isWhole = (): boolean => nodes.every(({ state }) => state === 'connected') && leases.every(({ valid }) => valid);

async function heapBytes(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  // what the first run finds to be finalized goes with the second
  for (let n = 0; n < 2; n++) {
    gc();
    await delay(20);
  }
  return process.memoryUsage().heapUsed;
}

/** Does something at a pace, whatever it takes each time. @returns how often it was done */
async function paced({ rate, ms }: Pace, act: (n: number) => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  const running: Promise<unknown>[] = [];
  for (let passed = 0; passed < ms; passed = performance.now() - begun) {
    while (running.length < (passed / 1000) * rate) running.push(act(running.length));
    await delay(TICK_MS);
  }
  await Promise.all(running);
  return running.length;
}

/** The row of a stream at a node, as its tick-th report has it. */
function rowOf(name: string, tick: number): StatsRow {
  const at = 1763855935123 + 1000 * tick;
  return {
    key: `server/default@1/app@1/${name}`,
    counters: { in: 1e6 * tick, out: 2e6 * tick },
    gauges: {
      connections: 10 + (tick % 5),
      lastIn: 5e5 + tick,
      avgIn: 4e6 + tick,
      lastOut: 5e5 + tick,
      avgOut: 4e6 + tick,
    },
    latest: { created: -1763855935123, updated: at, received: at, sent: at, maxIn: 5e6, maxOut: 6e6 },
  };
}

const commands = {
  /** Nodes with times as in life. */
  async open({ url, from, count }: Span & { readonly url: string }): Promise<void> {
    for (let n = from; n < from + count; n++) {
      const node = await openRedis({
        name: 'scale',
        id: `node-${n}`,
        redis: { url },
        file: undefined,
        onDamaged: () => {},
        onFault: () => {},
        port: { host: '127.0.0.1', port: 0, secrets: ['of this measurement'] },
      });
      const http = [`http://10.0.0.${n}:3333`];
      node.describe({ load: 0.2, full: false, info: { version: '0.1.0', addresses: { http }, streams: n } });
      nodes.push(node);
    }
  },

  /** All nodes see so many. */
  async see(count: number): Promise<void> {
    await until('all see each other', () => nodes.every((node) => node.nodes().length === count));
  },

  /** The nodes take keys of streams in turn. */
  async claim({ from, count }: Span): Promise<void> {
    let next = from;
    const take = async (): Promise<void> => {
      while (next < from + count) {
        const n = next++;
        const node = nodes[n % nodes.length] as Cluster;
        const key = joinKey('stream', 'default', 'app', `stream-${n}`);
        const claim = await node.claim(key, metaOf(n), { silence: 'continue', keepMs: 30_000 });
        if ('owner' in claim) throw new Error(`${key} is held by ${claim.owner.id}`);
        leases.push(claim.lease);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, take));
  },

  change(pace: Pace): Promise<number> {
    return paced(pace, (n) => (leases[n % leases.length] as Lease).update(metaOf(Date.now() + n)));
  },

  keep(pace: Pace): Promise<number> {
    return paced(pace, (n) => (leases[n % leases.length] as Lease).keep({ run: 'abcdefgh', at: Date.now() + n }));
  },

  /**
   * Each node reports rows of statistics once a second, of which everything changes. `visits` of them begin, and as many have ended.
   * @returns how many reports it were
   */
  async report({ rows, visits, ms }: Rows): Promise<number> {
    const named = (count: number, of: string): string[] => Array.from({ length: count }, (_, n) => `${of} ${n}`);
    let reports = 0;
    for (; 1000 * reports < ms; reports++) {
      const end = performance.now() + 1000;
      const tick = ++ticks;
      const rowsOf = ({ self: { id } }: Cluster): StatsRow[] => [
        ...named(rows, id).map((name) => rowOf(name, tick)),
        ...named(visits, `${id} ${tick}`).map((name) => rowOf(name, tick)),
        ...named(visits, `${id} ${tick - 1}`).map((name) => ({ ...rowOf(name, tick), gauges: {} })),
      ];
      await Promise.all(nodes.map((node) => node.reportStats(rowsOf(node))));
      await delay(Math.max(0, end - performance.now()));
    }
    return reports * nodes.length;
  },

  /** Resolves when every node has lost its connection once and is whole again. @returns when: milliseconds since 1970 */
  async mend(_: undefined): Promise<number> {
    await Promise.all(
      nodes.map(async (node) => {
        if (node.state === 'connected') await once(node.events, 'state');
      }),
    );
    while (!isWhole()) await delay(5);
    return Date.now();
  },

  /** @returns how many claims the nodes have not lost, and the fewest that one of them knows of */
  async count(_: undefined): Promise<{ held: number; fewest: number }> {
    const known: number[] = [];
    for (const node of nodes) known.push((await node.list('')).size);
    return { held: leases.filter(({ signal }) => !signal.aborted).length, fewest: Math.min(...known) };
  },

  heap(_: undefined): Promise<number> {
    return heapBytes();
  },

  async close(_: undefined): Promise<void> {
    await Promise.all(nodes.map((node) => node.close()));
  },
};

export type HoldCommands = typeof commands;

serve(commands);
