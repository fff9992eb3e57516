import { isBelow } from '../keys.ts';
import type { Owner, OwnerChange } from '../types.ts';
import { Watchers } from '../watchers.ts';
import type { ClaimChanges } from './changes.ts';
import { parseClaim, type ClaimRecord } from './record.ts';

interface Entry {
  readonly record: ClaimRecord;
  /** As Redis has it, for a quick comparison. */
  readonly text: string;
}

/** All claims of the cluster as this node knows them. */
export class ClaimTable {
  readonly #watchers = new Watchers();
  readonly #entries = new Map<string, Entry>();
  readonly #onChange: (key: string, record: ClaimRecord) => void;
  readonly #onFault: (error: Error) => void;
  /** What Redis did not have when everything was read from it, and may get again. */
  #missing = new Set<string>();
  revision = 0;

  /**
   * @param onChange called for every claim that was made or changed, and for all when all are read
   * @param onFault called for a malformed claim: its key counts as free here
   */
  constructor(onChange: (key: string, record: ClaimRecord) => void, onFault: (error: Error) => void) {
    this.#onChange = onChange;
    this.#onFault = onFault;
  }

  ownerOf(key: string): Owner | undefined {
    return this.record(key)?.owner;
  }

  record(key: string): ClaimRecord | undefined {
    return this.#entries.get(key)?.record;
  }

  list(path: string): Map<string, Owner> {
    const below = [...this.#entries].filter(([key]) => isBelow(key, path));
    return new Map(below.map(([key, { record }]) => [key, record.owner]));
  }

  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void {
    return this.#watchers.add(path, this.list(path), listener);
  }

  /** What Redis has is not what it had: everything is read again. */
  forget(): void {
    this.revision = 0;
  }

  /** @param settled false while owners repeat their claims in a Redis that has lost them: missing ones may still come */
  apply({ revision, kind, entries, cursor }: ClaimChanges, settled: boolean): void {
    if (kind === 'nothing') return;
    const changes = new Map<string, Owner | undefined>();
    if (kind === 'all') this.#missing = new Set(this.#entries.keys());
    for (const [key, text] of entries) {
      this.#missing.delete(key);
      if (text === '') this.#remove(key, changes);
      else this.#put(key, text, kind !== 'changed', changes);
    }
    if (settled && cursor === '') {
      for (const key of this.#missing) this.#remove(key, changes);
      this.#missing.clear();
    }
    // what was read in part is read from the beginning when it does not come to its end
    if (cursor === '' || cursor === '0') this.revision = revision;
    if (changes.size > 0) this.#watchers.notify(changes);
  }

  close(): void {
    this.#watchers.close();
  }

  #remove(key: string, changes: Map<string, Owner | undefined>): void {
    if (this.#entries.delete(key)) changes.set(key, undefined);
  }

  #put(key: string, text: string, isReadAnew: boolean, changes: Map<string, Owner | undefined>): void {
    const present = this.#entries.get(key);
    if (present?.text === text) {
      if (isReadAnew) this.#onChange(key, present.record);
      return;
    }
    const record = parseClaim(text);
    if (record === undefined) {
      this.#onFault(new Error(`Redis: the claim of ${key} is malformed`));
      return this.#remove(key, changes);
    }
    // a Redis that came back with an older state has one of an earlier owner
    if (record.owner.fence < (this.record(key)?.owner.fence ?? 0)) return;
    this.#entries.set(key, { record, text });
    changes.set(key, record.owner);
    this.#onChange(key, record);
  }
}
