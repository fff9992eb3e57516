const STEPS = 8;
/** Timers know no longer ones. */
const LONGEST_STEP_MS = 2 ** 31 - 1;

/**
 * Finds out that nothing was heard for a while, or not answered in time. It counts steps: one in which this process
 * stood still and could hear nothing is no more than any other, and what came meanwhile is heard before the next.
 */
export class Watchdog {
  readonly #timer: NodeJS.Timeout;
  #steps = 0;

  /**
   * @param ms that are waited for something to be heard, and up to an eighth more
   * @param onSilence called once
   */
  constructor(ms: number, onSilence: () => void) {
    this.#timer = setInterval(
      () => {
        if (++this.#steps <= STEPS) return;
        this.close();
        onSilence();
      },
      Math.min(ms / STEPS, LONGEST_STEP_MS),
    );
  }

  heard(): void {
    this.#steps = 0;
  }

  /** Does not keep the process alive. */
  unref(): this {
    this.#timer.unref();
    return this;
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
  }
}
