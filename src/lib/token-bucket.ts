/** Token bucket; full at first. Times are in milliseconds of any monotonic clock. */
export class TokenBucket {
  readonly #size: number;
  readonly #refillMs: number;
  #fullAt = -Infinity;

  /** @param refillMs time between two new tokens */
  constructor(size: number, refillMs: number) {
    this.#size = size;
    this.#refillMs = refillMs;
  }

  /** Takes a token. @returns false when there is none */
  take(now = performance.now()): boolean {
    if (this.waitMs(now) > 0) return false;
    this.#fullAt = Math.max(this.#fullAt, now) + this.#refillMs;
    return true;
  }

  waitMs(now = performance.now()): number {
    return Math.max(0, this.#fullAt - now - (this.#size - 1) * this.#refillMs);
  }

  isFull(now = performance.now()): boolean {
    return this.#fullAt <= now;
  }
}
