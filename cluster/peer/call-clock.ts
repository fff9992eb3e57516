import { UnreachableError } from '../errors.ts';

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
 * The time by which a node judges the calls that it gets, in milliseconds since 1970. It never goes back, whatever is done to
 * the clocks of the machine and of Redis: a call that was too old once is so for ever. Nobody else has to agree with it.
 */
export class CallClock {
  #aheadMs = performance.timeOrigin;

  get now(): number {
    return performance.now() + this.#aheadMs;
  }

  /** Whether a call of that time is young enough. One from the future sets the clock: no clock of another node is better. */
  accepts(time: number): boolean {
    this.#aheadMs = Math.max(this.#aheadMs, time - performance.now());
    return time >= this.now - WINDOW_MS;
  }
}

/** The clocks of other nodes, as far as they have told them. */
export class NodeClocks {
  /** By id: by how much a node's clock is ahead of the monotonic one of this process. */
  readonly #aheadMs = new Map<string, number>();

  timeOf(id: string): number | undefined {
    const aheadMs = this.#aheadMs.get(id);
    return aheadMs === undefined ? undefined : performance.now() + aheadMs;
  }

  learn(id: string, time: number): void {
    this.#aheadMs.set(id, time - performance.now());
  }
}
