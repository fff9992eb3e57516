/** Calls back at the earliest of several times. */
export class LeaseExpiry {
  readonly #onEnd: () => void;
  #timer: NodeJS.Timeout | undefined;
  #deadline = Infinity;

  /** @param onEnd may be called early: it has to check, and to watch again what has not ended */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  /** @param until on the monotonic clock, in milliseconds */
  watch(until: number): void {
    if (until >= this.#deadline) return;
    clearTimeout(this.#timer);
    this.#deadline = until;
    this.#timer = setTimeout(
      () => {
        this.#deadline = Infinity;
        this.#onEnd();
      },
      Math.max(1, until - performance.now()),
    );
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}
