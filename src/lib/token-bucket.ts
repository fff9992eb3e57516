/** Sums of times between tokens are rounded by less. */
const ROUNDING_MS = 0.001;

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
    const wait = this.#fullAt - now - (this.#size - 1) * this.#refillMs;
    return wait < ROUNDING_MS ? 0 : wait;
  }

  isFull(now = performance.now()): boolean {
    return this.#fullAt <= now;
  }
}
