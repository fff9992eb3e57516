import type { ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { freePorts } from '../network/ports.ts';
import { RedisServer } from './redis.ts';
import { until } from '../time/until.ts';

/** Three nodes of a Redis Cluster, and a client of each. */
export async function openRedisCluster(t: Pick<ExecutionContext, 'teardown'>) {
  const free = freePorts(6);
  const ports = free.slice(0, 3);
  const bus = free.slice(3);
  await Promise.all(
    ports.map((port, n) =>
      RedisServer.start(t, {
        port,
        args: ['--cluster-enabled', 'yes', '--cluster-port', String(bus[n]), '--cluster-node-timeout', '10000'],
      }),
    ),
  );
  const clients = ports.map((port) => new Redis({ host: '127.0.0.1', port }));
  t.teardown(() => clients.forEach((client) => client.disconnect()));
  const [first, ...others] = clients as [Redis, ...Redis[]];
  const share = [
    [0, 5460],
    [5461, 10922],
    [10923, 16383],
  ] as const;
  await Promise.all(clients.map((client, n) => client.call('CLUSTER', 'ADDSLOTSRANGE', ...(share[n] ?? [0, 0]))));
  await Promise.all(
    others.map((_, n) => first.call('CLUSTER', 'MEET', '127.0.0.1', ports[n + 1] ?? 0, bus[n + 1] ?? 0)),
  );
  await until('the cluster is there', async () =>
    (await Promise.all(clients.map((client) => client.call('CLUSTER', 'INFO')))).every(
      (text) => String(text).includes('cluster_state:ok') && String(text).includes('cluster_known_nodes:3'),
    ),
  );
  return { ports, clients, redis: { cluster: ports.map((port) => `redis://127.0.0.1:${port}`) } };
}
