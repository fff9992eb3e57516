/** Messages in a burst, and per second after it: only candidates come a dozen at once. */
const BURST = 100;
const PER_SECOND = 20;

/** Limits the messages of one peer. */
export class MessageRate {
  #tokens = BURST;
  #refilled = Date.now();

  /** @returns false when the peer has sent too many. @param now milliseconds since the Unix epoch */
  take(now: number): boolean {
    this.#tokens = Math.min(BURST, this.#tokens + ((now - this.#refilled) / 1000) * PER_SECOND);
    this.#refilled = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
