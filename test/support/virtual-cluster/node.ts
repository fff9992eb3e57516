import type { Cluster } from '#cluster';
import type { RedisClusterOptions } from '../../../cluster/redis/cluster.ts';
import { openRedis } from './replaced.ts';
import type { Process } from './scheduler.ts';

/** Name of the clusters, and the prefix of their keys. */
const NAME = 'virtual';
export const PREFIX = `{kiln:${NAME}}:`;

/** Starts a node in a process of a world: its id is the name of that, and of its host. */
export async function openNode(process: Process, options: Partial<RedisClusterOptions> = {}): Promise<Cluster> {
  const id = process.name;
  const cluster = await process.enter(() =>
    openRedis({
      name: NAME,
      id,
      redis: { url: 'redis://redis' },
      file: undefined,
      onDamaged: () => {},
      onFault: () => {},
      port: { host: id, port: 1, secrets: ['secret'] },
      ...options,
    }),
  );
  process.enter(() => cluster.describe({ load: 0, full: false, info: {} }));
  return cluster;
}
