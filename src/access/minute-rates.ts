const MINUTE_MS = 60_000;
/** Keys that are remembered of a minute: beyond them nothing is counted, which such a number of addresses evades anyway. */
const MAX_KEYS = 50_000;

/** How often something came within the last minute, by key: that of the minute before counts in part (a sliding window). */
export class MinuteRates {
  #current = new Map<string, number>();
  #previous: ReadonlyMap<string, number> = new Map();
  /** When the current minute began, by the monotonic clock. */
  #since = performance.now();

  of(key: string): number {
    const elapsed = this.#turn();
    const before = this.#previous.get(key) ?? 0;
    return (this.#current.get(key) ?? 0) + before * (1 - elapsed / MINUTE_MS);
  }

  add(key: string): void {
    this.#turn();
    const count = this.#current.get(key);
    if (count !== undefined || this.#current.size < MAX_KEYS) this.#current.set(key, (count ?? 0) + 1);
  }

  /** @returns milliseconds of the current minute */
  #turn(): number {
    const now = performance.now();
    const elapsed = now - this.#since;
    if (elapsed < MINUTE_MS) return elapsed;
    this.#previous = elapsed < 2 * MINUTE_MS ? this.#current : new Map();
    this.#current = new Map();
    this.#since = now - (elapsed % MINUTE_MS);
    return elapsed % MINUTE_MS;
  }
}
