/** Clocks of a channel, in milliseconds. */
export interface ChannelClock {
  /** Time since the epoch by the system's clock. */
  wall(): number;
  /** Time since an arbitrary moment; never jumps. */
  monotonic(): number;
  /** Calls once, later; returns its undo. */
  after(ms: number, then: () => void): () => void;
}

export const SYSTEM_CLOCK: ChannelClock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, then) => {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
};

/** A larger difference means that the clock was set, not that it runs fast or slow. */
const JUMP_MS = 1000;
/** Most that time runs faster or slower while a small difference is corrected. */
const SLEW = 0.005;

/** The system's time as a channel follows it: steps of less than a second are applied gradually. */
export class SmoothedWallClock {
  readonly #clock: ChannelClock;
  #offset: number;
  #lookedAt: number;

  constructor(clock: ChannelClock) {
    this.#clock = clock;
    this.#lookedAt = clock.monotonic();
    this.#offset = clock.wall() - this.#lookedAt;
  }

  /** Follows the system's clock. @returns by how much it was set; usually 0 */
  follow(): number {
    const now = this.#clock.monotonic();
    const difference = this.#clock.wall() - now - this.#offset;
    const most = (now - this.#lookedAt) * SLEW;
    this.#lookedAt = now;
    const isJump = Math.abs(difference) > JUMP_MS;
    this.#offset += isJump ? difference : Math.max(-most, Math.min(most, difference));
    return isJump ? difference : 0;
  }

  /** Milliseconds since the epoch at a time of the monotonic clock. */
  at(monotonic: number): number {
    return monotonic + this.#offset;
  }

  /** Monotonic time at a time since the epoch. */
  monotonic(wall: number): number {
    return wall - this.#offset;
  }
}
