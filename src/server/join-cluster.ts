import { dirname, join } from 'node:path';
import { openEmbedded, openRedis, type Cluster, type RedisOptions } from '#cluster';
import { secretsOf } from '../config/cluster-secrets.ts';
import { loadNodeTls, loadRedisTls } from '../config/cluster-tls.ts';
import type { ClusterConfig, ServerConfig } from '../config/model.ts';
import { hostInUrl } from '../lib/address.ts';
import type { Logger } from '../log/log.ts';
import type { StoreCounts } from '../stats/metrics/store-counts.ts';
import { redisReports, storageReports } from './cluster-log.ts';

const EVERY_IPV4 = ['*', '0.0.0.0'];

export interface JoinOptions {
  /** Base of relative paths of certificates. */
  readonly folder: string;
  readonly storageFile: string;
  /** Counts the requests to Redis. */
  readonly store: StoreCounts;
  readonly log: Logger;
}

/**
 * Joins the cluster of Server.xml, or makes one of this node alone.
 * @throws StorageError, CertificateError, errors of the system when the cluster port is unavailable
 */
export async function joinCluster(
  config: ServerConfig,
  { storageFile, folder, store, log }: JoinOptions,
): Promise<Cluster> {
  const { cluster, managers, bind, ip } = config;
  const kept = (cluster !== undefined || bind.managers.api !== undefined) && managers?.api.storage.enabled;
  const common = {
    file: kept ? storageFile : undefined,
    ...storageReports(log),
  };
  if (cluster === undefined) return await openEmbedded({ ...common, id: 'kiln' });
  const { name, redis, node } = cluster;
  const [first = '*'] = ip;
  const host = EVERY_IPV4.includes(first) ? '0.0.0.0' : first;
  const tls = await loadNodeTls(node, folder);
  const port = { host, port: node.port, advertise: node.advertiseAddress, secrets: secretsOf(cluster), tls };
  const nodesFile = kept ? join(dirname(storageFile), 'nodes.json') : undefined;
  return await openRedis({
    ...common,
    ...redisReports(node.id, log),
    onCommand: store.command,
    onBeat: store.beat,
    nodesFile,
    name,
    id: node.id,
    redis: await redisOptions(redis, folder),
    port,
  });
}

async function redisOptions(redis: ClusterConfig['redis'], folder: string): Promise<RedisOptions> {
  const { url, sentinels, masterName, cluster, user, password, sentinelUser, sentinelPassword } = redis;
  const tls = await loadRedisTls(redis.tls, folder);
  const common = { username: user || undefined, password: password || undefined, tls };
  if (url !== undefined) return { ...common, url };
  const scheme = tls === undefined ? 'redis' : 'rediss';
  const address = ({ host, port }: ClusterConfig['redis']['cluster'][number]) =>
    `${scheme}://${hostInUrl(host)}:${port}`;
  if (cluster.length > 0) return { ...common, cluster: cluster.map(address) };
  return {
    ...common,
    sentinels: sentinels.map(address),
    master: masterName,
    sentinelUsername: sentinelUser || undefined,
    sentinelPassword: sentinelPassword || undefined,
  };
}
