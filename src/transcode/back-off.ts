const FIRST_MS = 250;
/** Shorter than what the input's cache holds: even then nothing need be lost. */
const LONGEST_MS = 15_000;

/** When to try again: at once, then after pauses that double up to a longest one. */
export class BackOff {
  #next = 0;

  /** Milliseconds to wait before the next try. */
  next(): number {
    const pause = this.#next;
    this.#next = Math.min(LONGEST_MS, Math.max(FIRST_MS, pause * 2));
    return pause;
  }

  /** It went well for a while. */
  reset(): void {
    this.#next = 0;
  }
}
