import { setTimeout as delay } from 'node:timers/promises';
import type { Program } from '../../support/load/program.ts';
import type { PublishCommands } from '../../support/load/programs/publish.ts';
import type { LlhlsCommands } from '../../support/load/programs/watch-llhls.ts';
import type { Size } from './costs.ts';
import { measureUse, type Use } from './use.ts';

/** Until what runs often is compiled, and until a smaller load is all that there is. */
const WARM_UP_MS = 12_000;
const SETTLE_MS = 4000;
const DELAYS_MS = 8000;
const SECONDS = 16;
/** One unit is little beside the ticks of the kernel's clock. */
const SECONDS_OF_ONE = 24;

/** What loads go to: one server, or the nodes of a cluster. */
export interface Target {
  readonly pids: readonly number[];
  readonly rtmp: number;
  /** Ports that viewers are spread over. */
  readonly http: readonly number[];
}

export interface Loads {
  readonly clip: string;
  readonly publishers: Program<PublishCommands>;
  readonly llhls: Program<LlhlsCommands>;
}

/** Measures a load of each size. @param counts from many to few, so that the server is warm when it has little to do @returns from few to many */
export type Grow = (target: Target, loads: Loads, counts: readonly number[]) => Promise<Size[]>;

interface Delays {
  readonly p50: number;
  readonly p99: number;
}

/** Streams without viewers; their delay is measured afterwards, at a viewer of one of them. */
export const growStreams: Grow = async (target, { clip, publishers, llhls }, counts) => {
  const names = Array.from({ length: counts[0] ?? 0 }, (_, i) => `stream${i}`);
  await publishers.ask('start', { port: target.rtmp, clip, streams: names });
  await delay(WARM_UP_MS);
  const measured: (Delays & { count: number; use: Use })[] = [];
  for (const count of counts) {
    await publishers.ask('stop', names.splice(count));
    await delay(SETTLE_MS);
    const use = await measureUse(target.pids, { 'the publisher': publishers.pid }, secondsOf(count));
    await watch(target, llhls, 'stream0', target.http.length);
    await delay(DELAYS_MS);
    measured.push({ count, use, ...(await leave(llhls)) });
    const { connected } = await publishers.ask('count', undefined);
    if (connected !== count) throw new Error(`${connected} of ${count} publishers are connected`);
  }
  await publishers.ask('stop', names);
  return sizesOf(measured, await rest(target));
};

/** LL-HLS viewers of one stream. */
export const growViewers: Grow = async (target, { clip, publishers, llhls }, counts) => {
  await publishers.ask('start', { port: target.rtmp, clip, streams: ['live'] });
  await delay(WARM_UP_MS);
  const measured: (Delays & { count: number; use: Use })[] = [];
  for (const count of counts) {
    await watch(target, llhls, 'live', count);
    const use = await measureUse(target.pids, { 'the players': llhls.pid }, secondsOf(count));
    measured.push({ count, use, ...(await leave(llhls)) });
  }
  return sizesOf(measured, await rest(target));
};

/** Has viewers begin, as many on each port, and forgets how they began. */
async function watch({ http }: Target, llhls: Loads['llhls'], stream: string, count: number): Promise<void> {
  for (const [i, port] of http.entries()) {
    const share = Math.floor((count * (i + 1)) / http.length) - Math.floor((count * i) / http.length);
    await llhls.ask('start', { port, master: `/app/${stream}/llhls.m3u8`, hints: true, count: share });
  }
  await delay(SETTLE_MS);
  await llhls.ask('reset', undefined);
}

/** @throws Error when a viewer could not play on */
async function leave(llhls: Loads['llhls']): Promise<Delays> {
  const { p50, p99, failures } = await llhls.ask('report', { lastFrame: 0 });
  await llhls.ask('stop', undefined);
  if (failures.length > 0) throw new Error(`${failures.length} players failed: ${failures[0]}`);
  return { p50, p99 };
}

async function rest({ pids }: Target): Promise<Use> {
  await delay(SETTLE_MS);
  return measureUse(pids, {}, SECONDS);
}

function secondsOf(count: number): number {
  return count === 1 ? SECONDS_OF_ONE : SECONDS;
}

function sizesOf(measured: readonly (Delays & { count: number; use: Use })[], atRest: Use): Size[] {
  return measured
    .map(({ use, ...size }) => ({
      ...size,
      cpu: use.cpu - atRest.cpu,
      loop: use.loop,
      loopAtRest: atRest.loop,
      use,
    }))
    .toReversed();
}
