/** Minimum of all pauses except the first. */
const SHORTEST_MS = 250;

/** Pauses between attempts: none or a first one, then pauses that double up to a maximum. */
export class BackOff {
  readonly #longestMs: number;
  readonly #firstMs: number;
  #next: number;

  constructor(longestMs: number, firstMs = 0) {
    this.#longestMs = longestMs;
    this.#firstMs = firstMs;
    this.#next = firstMs;
  }

  /** Milliseconds until the next attempt. */
  next(): number {
    const pause = this.#next;
    this.#next = Math.min(this.#longestMs, Math.max(SHORTEST_MS, pause * 2));
    return pause;
  }

  /** Begins anew, after a success that lasted. */
  reset(): void {
    this.#next = this.#firstMs;
  }
}
