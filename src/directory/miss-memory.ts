import { BoundedMap } from '../lib/bounded-map.ts';

export interface MissMemoryOptions {
  /** Milliseconds for which a first miss is remembered; each further one adds as many. */
  readonly stepMs: number;
  /** Upper limit of that time. */
  readonly longestMs: number;
  /** Number of keys; the oldest are dropped. */
  readonly max: number;
}

interface Miss {
  readonly count: number;
  readonly until: number;
}

/** Keys that were looked for and not found, and need not be looked for again for a while. */
export class MissMemory {
  readonly #options: MissMemoryOptions;
  readonly #misses: BoundedMap<string, Miss>;

  constructor(options: MissMemoryOptions) {
    this.#options = options;
    this.#misses = new BoundedMap(options.max);
  }

  add(key: string): void {
    const { stepMs, longestMs } = this.#options;
    const now = performance.now();
    const before = this.#misses.get(key);
    // the last miss is long ago: begin anew
    const count = before === undefined || now > before.until + longestMs ? 1 : before.count + 1;
    this.#misses.set(key, { count, until: now + Math.min(longestMs, count * stepMs) });
  }

  delete(key: string): void {
    this.#misses.delete(key);
  }

  /** Whether a key need not be looked for now. */
  has(key: string): boolean {
    return performance.now() < (this.#misses.get(key)?.until ?? -Infinity);
  }
}
