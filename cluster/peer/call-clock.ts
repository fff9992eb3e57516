import { UnreachableError } from '../errors.ts';
import type { NodeIdentity } from '../types.ts';

/** How much older than the clock a call may be: longer than calls take, and than the clocks of nodes drift apart unnoticed. */
export const WINDOW_MS = 10_000;

/** A node has refused a call as too old by its clock, and has not executed it. */
export class ClockError extends UnreachableError {
  override readonly name = 'ClockError';
  /** The node's time, for another attempt; undefined when the node did not send it. */
  readonly time: number | undefined;

  constructor(message: string, time: number | undefined) {
    super(message, { lives: true });
    this.time = time;
  }
}

/**
 * The time by which a process judges incoming calls, in milliseconds since 1970. It begins as the cluster's time and never goes
 * back, even if the clocks of the machine and of Redis do: a call that was too old once stays too old. No other clock has to
 * agree with it.
 */
export class CallClock {
  readonly #first: () => number;
  #aheadMs: number | undefined;

  /** @param first returns the time to begin with; called at the first call */
  constructor(first: () => number) {
    this.#first = first;
  }

  get now(): number {
    return performance.now() + this.#ahead;
  }

  /** Lead over the monotonic clock of this process. */
  get #ahead(): number {
    return (this.#aheadMs ??= this.#first() - performance.now());
  }

  /** Whether a call of that time is recent enough. One from the future sets the clock: no node's clock is better than another's. */
  accepts(time: number): boolean {
    const { now } = this;
    if (time > now) this.#aheadMs = this.#ahead + time - now;
    return time >= now - WINDOW_MS;
  }
}

interface Learned {
  readonly incarnation: string;
  /** Lead of the node's clock over the monotonic clock of this process. */
  readonly aheadMs: number;
}

/** Clocks of other nodes, as far as known from their answers. */
export class NodeClocks {
  /** By id. */
  readonly #learned = new Map<string, Learned>();

  /** Present time of an incarnation of a node; with an empty incarnation, of the one that reported its time last. */
  timeOf({ id, incarnation }: NodeIdentity): number | undefined {
    const learned = this.#learned.get(id);
    if (learned === undefined || (incarnation !== '' && incarnation !== learned.incarnation)) return undefined;
    return performance.now() + learned.aheadMs;
  }

  /**
   * Handles the answer of a node that has rejected a call for its time.
   * @param time the node's, from its answer; undefined when the node judges by the cluster's time
   * @returns whether another call may be accepted
   */
  learn(node: NodeIdentity, time: number | undefined): boolean {
    const wasKnown = this.timeOf(node) !== undefined;
    if (time === undefined) this.#learned.delete(node.id);
    else this.#learned.set(node.id, { incarnation: node.incarnation, aheadMs: time - performance.now() });
    return wasKnown || time !== undefined;
  }
}
