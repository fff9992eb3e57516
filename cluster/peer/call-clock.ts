import { UnreachableError } from '../errors.ts';
import type { NodeIdentity } from '../types.ts';

/** How much older than the clock a call may be: longer than calls take, and than the clocks of nodes drift apart unnoticed. */
export const WINDOW_MS = 10_000;

/** A node has refused a call as too old by its clock, and has not executed it. */
export class ClockError extends UnreachableError {
  override readonly name = 'ClockError';
  /** The node's time, for another attempt; undefined when it has not told it. */
  readonly time: number | undefined;

  constructor(message: string, time: number | undefined) {
    super(message, { lives: true });
    this.time = time;
  }
}

/**
 * The time by which a process judges the calls that it gets, in milliseconds since 1970. It begins as the cluster's and never goes
 * back, whatever is done to the clocks of the machine and of Redis: a call that was too old once is so for ever. No other
 * clock has to agree with it.
 */
export class CallClock {
  readonly #first: () => number;
  #aheadMs: number | undefined;

  /** @param first the time to begin with, asked for with the first call */
  constructor(first: () => number) {
    this.#first = first;
  }

  get now(): number {
    return performance.now() + this.#ahead;
  }

  /** Of the monotonic clock of this process. */
  get #ahead(): number {
    return (this.#aheadMs ??= this.#first() - performance.now());
  }

  /** Whether a call of that time is young enough. One from the future sets the clock: no clock of another node is better. */
  accepts(time: number): boolean {
    const { now } = this;
    if (time > now) this.#aheadMs = this.#ahead + time - now;
    return time >= now - WINDOW_MS;
  }
}

interface Learned {
  readonly incarnation: string;
  /** By how much the clock is ahead of the monotonic one of this process. */
  readonly aheadMs: number;
}

/** The clocks of other nodes, as far as they have told them. */
export class NodeClocks {
  /** By id. */
  readonly #learned = new Map<string, Learned>();

  /** What a life of a node would tell now, or with an empty incarnation the one that has told its time last. */
  timeOf({ id, incarnation }: NodeIdentity): number | undefined {
    const learned = this.#learned.get(id);
    if (learned === undefined || (incarnation !== '' && incarnation !== learned.incarnation)) return undefined;
    return performance.now() + learned.aheadMs;
  }

  /**
   * A node has refused a call for its time.
   * @param time that it has told; undefined when it judges by the cluster's
   * @returns whether another call may be accepted
   */
  learn(node: NodeIdentity, time: number | undefined): boolean {
    const wasKnown = this.timeOf(node) !== undefined;
    if (time === undefined) this.#learned.delete(node.id);
    else this.#learned.set(node.id, { incarnation: node.incarnation, aheadMs: time - performance.now() });
    return wasKnown || time !== undefined;
  }
}
