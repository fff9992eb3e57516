import { BoundedMap } from '../lib/bounded-map.ts';

export interface MissMemoryOptions {
  /** How long a first miss is believed, in milliseconds; each one after it so much longer. */
  readonly stepMs: number;
  /** However often it was missed. */
  readonly longestMs: number;
  /** Of keys that are remembered: the oldest give way. */
  readonly max: number;
}

interface Miss {
  readonly count: number;
  readonly until: number;
}

/** What was looked for and not found, and is not looked for again for a while. Times are of the monotonic clock. */
export class MissMemory {
  readonly #options: MissMemoryOptions;
  readonly #misses: BoundedMap<string, Miss>;

  constructor(options: MissMemoryOptions) {
    this.#options = options;
    this.#misses = new BoundedMap(options.max);
  }

  /** It was not found. */
  add(key: string): void {
    const { stepMs, longestMs } = this.#options;
    const now = performance.now();
    const before = this.#misses.get(key);
    // who has not asked for long begins anew
    const count = before === undefined || now > before.until + longestMs ? 1 : before.count + 1;
    this.#misses.set(key, { count, until: now + Math.min(longestMs, count * stepMs) });
  }

  /** It was found. */
  delete(key: string): void {
    this.#misses.delete(key);
  }

  /** It is not to be looked for now. */
  has(key: string): boolean {
    return performance.now() < (this.#misses.get(key)?.until ?? -Infinity);
  }
}
