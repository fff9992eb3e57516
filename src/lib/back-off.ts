const FIRST_MS = 250;

/** When to try again: at once, then after pauses that double up to a longest one. */
export class BackOff {
  readonly #longestMs: number;
  #next = 0;

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** Milliseconds to wait before the next try. */
  next(): number {
    const pause = this.#next;
    this.#next = Math.min(this.#longestMs, Math.max(FIRST_MS, pause * 2));
    return pause;
  }

  /** It went well for a while. */
  reset(): void {
    this.#next = 0;
  }
}
