import type { ChannelClock } from './clock.ts';

/** Calls the next step of a channel: after a pause, or at once when it is woken. */
export class StepTimer {
  readonly #clock: ChannelClock;
  readonly #step: () => void;
  #steppedAt: number;
  #isWoken = false;
  #cancel: (() => void) | undefined;

  constructor(clock: ChannelClock, step: () => void) {
    this.#clock = clock;
    this.#step = step;
    this.#steppedAt = clock.monotonic();
  }

  /** Begins a step, which may come before its time. @returns milliseconds since the last one */
  begin(now: number): number {
    const passed = now - this.#steppedAt;
    this.#steppedAt = now;
    this.#isWoken = false;
    this.#cancel?.();
    return passed;
  }

  /** Sets the time of the next step. */
  arm(ms: number): void {
    this.#cancel = this.#clock.after(ms, this.#step);
  }

  wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    this.#cancel?.();
    this.arm(0);
  }

  /** Cancels the next step. */
  close(): void {
    this.#cancel?.();
  }
}
