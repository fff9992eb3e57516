/** Seconds of input that may wait. */
export const MAX_LAG = 3;
/** How long encoders that are further behind have to come nearer. */
const PATIENCE_MS = 4000;

/**
 * Tells encoders that are too slow from those that catch up, as after a start or when a source sends much at once:
 * for the latter, less and less waits.
 */
export class Lag {
  #least = Infinity;
  #since = 0;

  /**
   * @param seconds of input that wait
   * @param now by `performance.now()`
   * @returns whether they do not catch up; not again before there was time for that
   */
  isLasting(seconds: number, now: number): boolean {
    if (seconds <= MAX_LAG) {
      this.#least = Infinity;
    } else if (seconds < this.#least) {
      this.#least = seconds;
      this.#since = now;
    } else if (now - this.#since >= PATIENCE_MS) {
      this.#least = Infinity;
      return true;
    }
    return false;
  }
}
