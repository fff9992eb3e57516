export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** One stored object. `revision` grows with every change of any entry of the store. */
export interface ConfigEntry {
  readonly value: Json;
  readonly revision: number;
}

/**
 * What was created through the management API, by key. A write is durable when its promise resolves.
 * Keys are paths of names; no name is empty.
 */
export interface ConfigStore {
  entries(): ReadonlyMap<string, ConfigEntry>;
  /**
   * Writes an entry.
   * @param seen revision that the caller's value is made of, 0 when there must be none yet
   * @throws ConflictError when it is another by now, StorageError when it could not be kept: then nothing changed
   */
  put(key: string, value: Json, seen: number): Promise<ConfigEntry>;
  /**
   * Removes an entry with everything below its path.
   * @returns false when there was none
   * @throws StorageError: then nothing changed
   */
  remove(key: string): Promise<boolean>;
}

/** What the nodes of one server share. */
export interface Cluster {
  readonly config: ConfigStore;
  /** Gives up what this node holds. Idempotent. */
  close(): Promise<void>;
}
