import { isBelow } from '../keys.ts';
import type { Owner, OwnerChange } from '../types.ts';
import { Watchers } from '../watchers.ts';
import type { ClaimChanges } from './changes.ts';
import { parseClaim, type ClaimRecord } from './record.ts';

/** All claims of the cluster as this node knows them. */
export class ClaimTable {
  readonly #watchers = new Watchers();
  /** As Redis has them: there may be a hundred thousand, of which few are asked for. */
  readonly #texts = new Map<string, string>();
  readonly #onChange: (key: string, record: ClaimRecord) => void;
  readonly #onFault: (error: Error) => void;
  /** Keys that were missing when all claims were read from Redis, and may come back. */
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
    const text = this.#texts.get(key);
    return text === undefined ? undefined : parseClaim(text);
  }

  list(path: string): Map<string, Owner> {
    const owners = new Map<string, Owner>();
    for (const [key, text] of this.#texts) {
      const owner = isBelow(key, path) ? parseClaim(text)?.owner : undefined;
      if (owner !== undefined) owners.set(key, owner);
    }
    return owners;
  }

  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void {
    return this.#watchers.add(path, this.list(path), listener);
  }

  /** Has all claims read again, since Redis may be in another state. */
  forget(): void {
    this.revision = 0;
  }

  /** @param settled false while owners repeat their claims in a Redis that has lost them: missing ones may still come */
  apply({ revision, kind, entries, cursor }: ClaimChanges, settled: boolean): void {
    if (kind === 'nothing') return;
    const changes = new Map<string, Owner | undefined>();
    if (kind === 'all') this.#missing = new Set(this.#texts.keys());
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
    if (this.#texts.delete(key)) changes.set(key, undefined);
  }

  #put(key: string, text: string, isReadAnew: boolean, changes: Map<string, Owner | undefined>): void {
    const present = this.#texts.get(key);
    if (present === text && !isReadAnew) return;
    const record = parseClaim(text);
    if (record === undefined) {
      this.#onFault(new Error(`Redis: the claim of ${key} is malformed`));
      return this.#remove(key, changes);
    }
    if (present !== text) {
      // a Redis that came back with an older state has one of an earlier owner
      if (present !== undefined && record.owner.fence < fenceOf(present)) return;
      this.#texts.set(key, text);
      changes.set(key, record.owner);
    }
    this.#onChange(key, record);
  }
}

function fenceOf(text: string): number {
  return Number(text.slice(0, text.indexOf(' ')));
}
