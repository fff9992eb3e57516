const STEPS = 8;
/** Maximum of timers. */
const LONGEST_STEP_MS = 2 ** 31 - 1;

/**
 * Calls back after a time without `heard`, such as for an answer that is late. It counts steps: a step in which this process
 * stood still, and could receive nothing, counts as one, and what arrived in it is handled before the next.
 */
export class Watchdog {
  readonly #timer: NodeJS.Timeout;
  #steps = 0;

  /** @param ms time without `heard`; the call may come an eighth later @param onSilence called once */
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

  unref(): this {
    this.#timer.unref();
    return this;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
