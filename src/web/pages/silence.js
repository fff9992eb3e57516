const FIRST_MS = 1000;
const MOST_MS = 8000;
/** After so long without another silence the next one is noticed as soon as the first one was. */
const CALM_MS = 30_000;

/**
 * Tells when no media has come for so long that the server may be gone. A stream may have pauses of its own, such as one
 * with one frame a second: after each that was explained the next one may last twice as long.
 */
export class SilenceWatch {
  #received;
  #heardAt;
  /** When a silence was last over, or explained. */
  #brokenAt = -Infinity;
  #explainedAt = -Infinity;
  #patience = FIRST_MS;

  /** @param now milliseconds of a monotonic clock */
  constructor(now) {
    this.#heardAt = now;
  }

  /**
   * @param received packets so far
   * @returns whether nothing has come for too long
   */
  heard(received, now) {
    if (received === this.#received) return now - Math.max(this.#heardAt, this.#explainedAt) >= this.#patience;
    if (now - this.#heardAt >= FIRST_MS) this.#brokenAt = now;
    else if (now - this.#brokenAt > CALM_MS) this.#patience = FIRST_MS;
    this.#received = received;
    this.#heardAt = now;
    return false;
  }

  /** The server is there: it has nothing to send. */
  explained(now) {
    this.#explainedAt = now;
    this.#brokenAt = now;
    this.#patience = Math.min(2 * this.#patience, MOST_MS);
  }
}
