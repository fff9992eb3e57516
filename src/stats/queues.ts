import Type, { type Static } from 'typebox';
import type { Application } from '../core/application.ts';
import type { Queue, QueueKind } from '../core/queue.ts';
import type { Registry } from '../core/registry.ts';
import { quantileOf } from '../lib/histogram.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';

const EVERY_MS = 1000;

/** Part of the server that a queue leads to, by OvenMediaEngine's abbreviation if it has that part. */
const PARTS: Readonly<Record<QueueKind, string>> = {
  channel: 'prv',
  encoder: 'trs',
  file: 'pub',
  flv: 'pub',
  ovt: 'pub',
  push: 'pub',
  relay: 'pub',
  rtmp: 'pub',
  rtsp: 'pub',
  srt: 'pub',
};

export const QueueEntry = Type.Object({
  avgWaitingTime: Type.Integer({ description: 'Milliseconds that what was taken of late had waited' }),
  drop: Type.Integer({ description: 'What the readers were too slow for, so far' }),
  id: Type.Integer({ description: 'Unique on its node' }),
  inputPerSecond: Type.Integer(),
  node: Type.String({ description: 'Id of the node that has the queue' }),
  outputPerSecond: Type.Integer(),
  p50WaitingTime: Type.Integer({ description: 'Milliseconds that half of what was taken of late had waited at most' }),
  p95WaitingTime: Type.Integer({ description: 'Milliseconds that 95 % of it had waited at most' }),
  p99WaitingTime: Type.Integer({ description: 'Milliseconds that 99 % of it had waited at most' }),
  peak: Type.Integer({ description: 'The most that has waited at once' }),
  size: Type.Integer({ description: 'What waits now' }),
  threshold: Type.Integer({ description: 'A size beyond it is congestion; 0 until the rate is known' }),
  type: Type.Union([Type.Literal('Packet'), Type.Literal('Byte')], { description: 'What is counted' }),
  urn: Type.String({ description: '`mngq:v=#<vhost>#<app>:s=<stream>:p=<part>:n=<readers>`' }),
});
export type QueueEntry = Static<typeof QueueEntry>;

const { p50WaitingTime, p95WaitingTime, p99WaitingTime, ...known } = QueueEntry.properties;
/** Answer of another node: one of an earlier version knows the mean alone. */
export const NodeQueueEntry = Type.Object({
  ...known,
  ...Type.Partial(Type.Object({ p50WaitingTime, p95WaitingTime, p99WaitingTime })).properties,
});

/** An answer of another node, with the mean in place of percentiles that it does not know. */
export function completeEntry(entry: Static<typeof NodeQueueEntry>): QueueEntry {
  const mean = entry.avgWaitingTime;
  return { p50WaitingTime: mean, p95WaitingTime: mean, p99WaitingTime: mean, ...entry };
}

/** Rates per second, and waits in milliseconds, of a queue in the last second or so. */
interface Pace {
  readonly input: number;
  readonly output: number;
  readonly dropped: number;
  readonly waiting: number;
  readonly percentiles: Percentiles;
}

/** Milliseconds. */
interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Counters of a queue at the last measurement. */
interface Reading {
  readonly at: number;
  readonly came: number;
  readonly taken: number;
  readonly dropped: number;
  readonly waited: number;
  /** Counts of `Queue.waits`. */
  readonly waits: readonly number[];
}

interface Measured {
  readonly reading: Reading;
  readonly pace: Pace;
  /** Packets per second in the last interval that had any. */
  readonly usualInput: number;
}

export interface QueueState extends Pace {
  readonly application: Application;
  readonly stream: InputStream | OutputStream;
  readonly queue: Queue;
  /** In the unit of the queue; 0 while it is not known. */
  readonly threshold: number;
}

const IDLE: Pace = { input: 0, output: 0, dropped: 0, waiting: 0, percentiles: { p50: 0, p95: 0, p99: 0 } };

/** Queues between this node's streams and their readers, measured once a second. */
export class Queues {
  readonly #registry: Registry;
  readonly #measured = new WeakMap<Queue, Measured>();
  readonly #timer = setInterval(() => this.#look(), EVERY_MS).unref();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  *all(): Iterable<QueueState> {
    for (const { application, stream, queue } of queuesOf(this.#registry)) {
      const { pace, usualInput } = this.#measured.get(queue) ?? { pace: IDLE, usualInput: 0 };
      yield { application, stream, queue, threshold: thresholdOf(queue, usualInput), ...pace };
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = performance.now();
    for (const { queue } of queuesOf(this.#registry)) {
      const before = this.#measured.get(queue);
      const reading = read(queue, now);
      const pace = paceBetween(before?.reading ?? begin(queue), reading, queue);
      const usualInput = pace.input > 0 ? pace.input : (before?.usualInput ?? 0);
      this.#measured.set(queue, { reading, pace, usualInput });
    }
  }
}

/** @param node id of this node */
export function queueEntry({ application, stream, queue, ...state }: QueueState, node: string): QueueEntry {
  const { id, kind, size, peak, dropped } = queue;
  return {
    avgWaitingTime: Math.round(state.waiting),
    drop: dropped,
    id,
    inputPerSecond: Math.round(state.input),
    node,
    outputPerSecond: Math.round(state.output),
    p50WaitingTime: Math.round(state.percentiles.p50),
    p95WaitingTime: Math.round(state.percentiles.p95),
    p99WaitingTime: Math.round(state.percentiles.p99),
    peak,
    size,
    threshold: state.threshold,
    type: 'bytes' in queue.threshold ? 'Byte' : 'Packet',
    urn: `mngq:v=${application.internalName}:s=${stream.name}:p=${PARTS[kind]}:n=${kind}`,
  };
}

function* queuesOf(registry: Registry): Iterable<Pick<QueueState, 'application' | 'stream' | 'queue'>> {
  for (const vhost of registry.vhosts.values()) {
    for (const application of vhost.applications.values()) {
      const { outputs, relays } = application;
      for (const streams of [application.streams(), outputs.values(), relays.values()])
        for (const stream of streams) for (const queue of stream.queues) yield { application, stream, queue };
    }
  }
}

function begin({ createdAt }: Queue): Reading {
  return { at: createdAt, came: 0, taken: 0, dropped: 0, waited: 0, waits: [] };
}

function read(queue: Queue, now: number): Reading {
  const { came, taken, dropped, waits } = queue;
  return { at: now, came, taken, dropped, waited: queue.waited(now), waits: [...(waits?.counts ?? [])] };
}

function paceBetween(before: Reading, after: Reading, queue: Queue): Pace {
  const seconds = (after.at - before.at) / 1000;
  if (seconds <= 0) return IDLE;
  const taken = after.taken - before.taken;
  // if nothing was taken: the mean of what still waits
  const waited = (after.waited - before.waited) / (taken || queue.size || 1);
  return {
    input: (after.came - before.came) / seconds,
    output: taken / seconds,
    dropped: (after.dropped - before.dropped) / seconds,
    waiting: waited,
    percentiles: percentilesBetween(before, after, queue),
  };
}

function percentilesBetween(before: Reading, after: Reading, queue: Queue): Percentiles {
  const had = after.waits.map((count, at) => count - (before.waits[at] ?? 0));
  const left = had.reduce((sum, count) => sum + count, 0);
  const atOnce = Math.max(0, after.taken - before.taken - left);
  if (left === 0) {
    // if nothing was taken: those of what still waits
    const { bounds, counts, sum } = queue.waiting;
    return sum > 0 && atOnce === 0 ? percentilesOf(bounds, counts) : IDLE.percentiles;
  }
  return percentilesOf(queue.waits?.bounds ?? [], [(had[0] ?? 0) + atOnce, ...had.slice(1)]);
}

function percentilesOf(bounds: readonly number[], counts: readonly number[]): Percentiles {
  const all = counts.reduce((sum, count) => sum + count, 0);
  const at = (share: number): number => quantileOf(bounds, counts, share * all);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

function thresholdOf({ threshold }: Queue, usualInput: number): number {
  return Math.ceil('bytes' in threshold ? threshold.bytes : threshold.seconds * usualInput);
}
