/** The clocks that a channel goes by, in milliseconds. */
export interface ChannelClock {
  /** Since the epoch, as the system's clock has it. */
  wall(): number;
  /** Since any time: it never jumps. */
  monotonic(): number;
  /** Calls once, later; answers its undo. */
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

/** A difference beyond this is a clock that was set, and no clock that goes wrong. */
const JUMP_MS = 1000;
/** How much faster or slower than it is time may seem while a small difference is made up for. */
const SLEW = 0.005;

/** The system's time as a channel follows it: steps of less than a second come slowly. */
export class SteadyWall {
  readonly #clock: ChannelClock;
  #offset: number;
  #lookedAt: number;

  constructor(clock: ChannelClock) {
    this.#clock = clock;
    this.#lookedAt = clock.monotonic();
    this.#offset = clock.wall() - this.#lookedAt;
  }

  /** Looks at the system's clock. @returns by how much that was set; 0 as usual */
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

  /** The monotonic clock at a time since the epoch. */
  monotonic(wall: number): number {
    return wall - this.#offset;
  }
}
