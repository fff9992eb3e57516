export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** One stored object. `revision` grows with every change of any entry of the store. */
export interface ConfigEntry {
  readonly value: Json;
  readonly revision: number;
}

/** One entry of a write. */
export interface Change {
  readonly key: string;
  /** Absent: the entry is removed with everything below its path. */
  readonly value?: Json;
  /** Revision that the change is made of, 0 when there must be no entry yet. */
  readonly seen: number;
}

/**
 * What was created through the management API, by key. A write is durable when its promise resolves.
 * Keys are paths of names; no name is empty.
 */
export interface ConfigStore {
  entries(): ReadonlyMap<string, ConfigEntry>;
  /**
   * Makes all changes or none.
   * @throws ConflictError when an entry is at another revision by now, StorageError when they could not be kept
   */
  write(changes: readonly Change[]): Promise<void>;
}

/** What the nodes of one server share. */
export interface Cluster {
  readonly config: ConfigStore;
  /** Gives up what this node holds. Idempotent. */
  close(): Promise<void>;
}
