import type { ExecutionContext } from 'ava';
import {
  openEmbedded,
  openRedis,
  type Cluster,
  type Owner,
  type OwnerChange,
  type RedisClusterOptions,
  type RedisOptions,
} from '#cluster';

/** Times of a cluster in tests: quicker than in life, and slow enough for a machine that stands still for a while. */
export const TIMING = { ttl: 4000, beat: 200, command: 1200, grace: 4200, forget: 9000 } as const;
export const SECRET = 'known to the nodes of this test';

/** A node on loopback; `host` and the rest as the test needs them. It leaves after the test. */
export async function openNode(
  t: Pick<ExecutionContext, 'teardown'>,
  id: string,
  redis: RedisOptions,
  options: Partial<RedisClusterOptions> = {},
): Promise<Cluster> {
  const cluster = await openRedis({
    name: 'test',
    id,
    redis,
    file: undefined,
    onDamaged: () => {},
    onFault: () => {},
    timing: TIMING,
    port: { host: '127.0.0.1', port: 0, secrets: [SECRET] },
    ...options,
  });
  t.teardown(() => cluster.close());
  cluster.describe({ load: 0, full: false, info: {} });
  return cluster;
}

/** A node that shares with nobody. */
export function openAlone(file?: string): Promise<Cluster> {
  return openEmbedded({ id: 'kiln', file, onDamaged: () => {}, onFault: () => {} });
}

/** What a node tells who watches a path: by key who holds it, and every call. */
export function mirrored(node: Cluster, path: string) {
  const owners = new Map<string, Owner>();
  const calls: (readonly OwnerChange[])[] = [];
  const undo = node.watch(path, (changes) => {
    calls.push(changes);
    for (const { key, owner } of changes) {
      if (owner === undefined) owners.delete(key);
      else owners.set(key, owner);
    }
  });
  return { owners, calls, undo };
}
