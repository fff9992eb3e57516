export { openEmbedded, type EmbeddedOptions } from './embedded.ts';
export { ConflictError, StorageError } from './errors.ts';
export { joinKey, splitKey } from './keys.ts';
export type { Change, Cluster, ConfigEntry, ConfigStore, Json } from './types.ts';
