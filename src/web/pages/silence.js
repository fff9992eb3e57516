const FIRST_MS = 1000;
const MOST_MS = 8000;
/** After so long without another silence the limit is `FIRST_MS` again. */
const CALM_MS = 30_000;

/**
 * Detects that no media has come for so long that the server may be gone. A stream may have pauses of its own, such as one
 * with one frame a second: after each that was explained the next one may last twice as long.
 */
export class SilenceWatch {
  /** @type {number | undefined} */
  #received;
  #heardAt;
  /** When a silence was last over, or explained. */
  #brokenAt = -Infinity;
  #explainedAt = -Infinity;
  #limitMs = FIRST_MS;

  /** @param {number} now milliseconds of a monotonic clock */
  constructor(now) {
    this.#heardAt = now;
  }

  /**
   * Notes the packets received so far.
   * @param {number} received
   * @param {number} now
   * @returns whether nothing has come for too long
   */
  heard(received, now) {
    if (received === this.#received) return now - Math.max(this.#heardAt, this.#explainedAt) >= this.#limitMs;
    if (now - this.#heardAt >= FIRST_MS) this.#brokenAt = now;
    else if (now - this.#brokenAt > CALM_MS) this.#limitMs = FIRST_MS;
    this.#received = received;
    this.#heardAt = now;
    return false;
  }

  /**
   * Notes that the server is there, and has nothing to send.
   * @param {number} now
   */
  explained(now) {
    this.#explainedAt = now;
    this.#brokenAt = now;
    this.#limitMs = Math.min(2 * this.#limitMs, MOST_MS);
  }
}
