/** Shortest pause after the first. */
const SHORTEST_MS = 250;

/** When to try again: at once, or after a first pause, then after pauses that double up to a longest one. */
export class BackOff {
  readonly #longestMs: number;
  readonly #firstMs: number;
  #next: number;

  constructor(longestMs: number, firstMs = 0) {
    this.#longestMs = longestMs;
    this.#firstMs = firstMs;
    this.#next = firstMs;
  }

  /** Milliseconds to wait before the next try. */
  next(): number {
    const pause = this.#next;
    this.#next = Math.min(this.#longestMs, Math.max(SHORTEST_MS, pause * 2));
    return pause;
  }

  /** It went well for a while. */
  reset(): void {
    this.#next = this.#firstMs;
  }
}
