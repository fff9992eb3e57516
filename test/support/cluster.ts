import type { ExecutionContext } from 'ava';
import { openRedis, type Cluster, type RedisClusterOptions, type RedisOptions } from '#cluster';

/** Times of a cluster in tests: as in life, a few times quicker. */
export const TIMING = { ttl: 1500, beat: 150, command: 400, grace: 1800, forget: 4000 } as const;
export const SECRET = 'known to the nodes of this test';

/** A node on loopback; `host` and the rest as the test needs them. It leaves after the test. */
export async function openNode(
  t: Pick<ExecutionContext, 'teardown'>,
  id: string,
  redis: RedisOptions,
  options: Partial<RedisClusterOptions> = {},
): Promise<Cluster> {
  const cluster = await openRedis({
    name: 'test', id, redis, file: undefined, onDamaged: () => {}, timing: TIMING,
    port: { host: '127.0.0.1', port: 0, secret: SECRET }, ...options,
  });
  t.teardown(() => cluster.close());
  return cluster;
}
