export { openEmbedded, type EmbeddedOptions } from './embedded/cluster.ts';
export * from './errors.ts';
export { joinKey, splitKey } from './keys.ts';
export { place } from './placement.ts';
export { openRedis, type RedisClusterOptions } from './redis/cluster.ts';
export type { RedisOptions } from './redis/connection.ts';
export type * from './types.ts';
