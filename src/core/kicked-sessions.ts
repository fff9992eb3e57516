import type { Continuity } from './continuity.ts';
import { RecentSet } from '../lib/recent-set.ts';

const KEY = 'kicked';
const MAX_KICKED = 1000;
/** How many of them stay rejected in the stream that continues this one. */
const MAX_KEPT = 50;

/** Sessions of a stream that were ended by the server: their ids are rejected from then on. */
export class KickedSessions {
  readonly #ids = new RecentSet<string>(MAX_KICKED);
  readonly #continuity: Continuity;

  constructor(continuity: Continuity) {
    this.#continuity = continuity;
    const before = continuity.inherited(KEY);
    if (!Array.isArray(before)) return;
    for (const id of before) if (typeof id === 'string') this.#ids.add(id);
    if (this.#ids.size > 0) this.#keep();
  }

  get ids(): Iterable<string> {
    return this.#ids;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Rejects an id from now on. Returns its undo, which does nothing if it was rejected before. */
  add(id: string): () => void {
    if (this.#ids.has(id)) return () => {};
    this.#ids.add(id);
    this.#keep();
    return () => {
      if (this.#ids.delete(id)) this.#keep();
    };
  }

  #keep(): void {
    this.#continuity.keep(KEY, [...this.#ids].slice(-MAX_KEPT));
  }
}
