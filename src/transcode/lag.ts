/** Seconds of input that may be queued. */
export const MAX_LAG = 3;
/** Time in which encoders further behind must catch up. */
const CATCH_UP_MS = 4000;

/**
 * Distinguishes encoders that are too slow from those that catch up after a start or a burst: the queue of the latter
 * shrinks.
 */
export class Lag {
  #least = Infinity;
  #since = 0;

  /**
   * @param seconds of queued input
   * @param now by `performance.now()`
   * @returns whether they do not catch up; then false until CATCH_UP_MS have passed again
   */
  isLasting(seconds: number, now: number): boolean {
    if (seconds <= MAX_LAG) {
      this.#least = Infinity;
    } else if (seconds < this.#least) {
      this.#least = seconds;
      this.#since = now;
    } else if (now - this.#since >= CATCH_UP_MS) {
      this.#least = Infinity;
      return true;
    }
    return false;
  }
}
