import type { RedisClusterOptions } from './redis/cluster.ts';
import type { Cluster } from './types.ts';

export { openEmbedded, type EmbeddedOptions } from './embedded/cluster.ts';
export type { Rejection } from './rejections.ts';
export * from './errors.ts';
export { isSameIncarnation } from './identity.ts';
export { joinKey, splitKey } from './keys.ts';
export { namesNode } from './peer/certificate.ts';
export { hasRoom, isAble, place } from './placement.ts';
export { ranked, weighing } from './ranked.ts';
export type { ClockReport } from './redis/clock-watch.ts';
export type { RedisClusterOptions } from './redis/cluster.ts';
export type { RedisOptions } from './redis/connection.ts';
export type { StoreReport } from './redis/outage.ts';
export type { StoreSettings } from './redis/settings.ts';
export type * from './types.ts';

/**
 * Opens a node of a cluster that meets in Redis. The Redis client is loaded only here: a node that runs alone starts without it.
 * @throws what `openRedis` of redis/cluster.ts does
 */
export async function openRedis(options: RedisClusterOptions): Promise<Cluster> {
  const redis = await import('./redis/cluster.ts');
  return redis.openRedis(options);
}
