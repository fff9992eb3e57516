import { isBelow } from '../keys.ts';
import type { Owner, OwnerChange } from '../types.ts';
import { Watchers } from '../watchers.ts';
import type { TableChanges } from './changes.ts';
import { parseClaim, type ClaimRecord } from './record.ts';

/** All claims of the cluster as this node knows them. */
export class ClaimTable {
  readonly #watchers = new Watchers();
  readonly #records = new Map<string, ClaimRecord>();
  readonly #onChange: (key: string, record: ClaimRecord) => void;
  revision = 0;

  /** @param onChange hears of every claim that was made or changed */
  constructor(onChange: (key: string, record: ClaimRecord) => void) {
    this.#onChange = onChange;
  }

  ownerOf(key: string): Owner | undefined {
    return this.#records.get(key)?.owner;
  }

  record(key: string): ClaimRecord | undefined {
    return this.#records.get(key);
  }

  list(path: string): Map<string, Owner> {
    const below = [...this.#records].filter(([key]) => isBelow(key, path));
    return new Map(below.map(([key, { owner }]) => [key, owner]));
  }

  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void {
    return this.#watchers.add(path, this.list(path), listener);
  }

  /** The connection was another: everything is read again. */
  forget(): void {
    this.revision = 0;
  }

  /** @param settled false while holders make their claims anew in a Redis that had lost them: what is missing may come yet */
  apply({ revision, full, entries }: TableChanges, settled: boolean): void {
    const changes = new Map<string, Owner | undefined>();
    if (full && settled) {
      const present = new Set(entries.map(([key]) => key));
      for (const key of this.#records.keys()) if (!present.has(key)) this.#remove(key, changes);
    }
    for (const [key, text] of entries) {
      if (text === '') this.#remove(key, changes);
      else this.#put(key, parseClaim(text), changes);
    }
    this.revision = revision;
    if (changes.size > 0) this.#watchers.tell(changes);
  }

  close(): void {
    this.#watchers.close();
  }

  #remove(key: string, changes: Map<string, Owner | undefined>): void {
    if (this.#records.delete(key)) changes.set(key, undefined);
  }

  #put(key: string, record: ClaimRecord, changes: Map<string, Owner | undefined>): void {
    if (same(this.#records.get(key), record)) return;
    this.#records.set(key, record);
    changes.set(key, record.owner);
    this.#onChange(key, record);
  }
}

function same(a: ClaimRecord | undefined, b: ClaimRecord): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
