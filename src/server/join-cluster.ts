import { dirname, join } from 'node:path';
import {
  openEmbedded,
  openRedis,
  UnavailableError,
  type ClockReport,
  type Cluster,
  type Rejection,
  type NodeIdentity,
  type RedisOptions,
  type StoreReport,
  type StoreSettings,
} from '#cluster';
import { secretsOf } from '../config/cluster-secrets.ts';
import { loadNodeTls, loadRedisTls } from '../config/cluster-tls.ts';
import type { ClusterConfig, ServerConfig } from '../config/model.ts';
import { hostInUrl } from '../lib/address.ts';
import type { Logger } from '../log/log.ts';
import type { StoreCounts } from '../stats/metrics/store-counts.ts';

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
    onDamaged: (movedTo: string, reason: string) =>
      log.error(
        { movedTo, reason },
        'the stored configuration is damaged: it was renamed, and this server starts without it',
      ),
    // the stack of a failed connection explains nothing
    onFault: (err: Error) =>
      log.warn(err instanceof UnavailableError ? { reason: err.message } : { err }, 'a cluster operation failed'),
  };
  if (cluster === undefined) return await openEmbedded({ ...common, id: 'kiln' });
  const { name, redis, node } = cluster;
  const [first = '*'] = ip;
  const host = EVERY_IPV4.includes(first) ? '0.0.0.0' : first;
  const tls = await loadNodeTls(node, folder);
  const port = { host, port: node.port, advertise: node.advertiseAddress, secrets: secretsOf(cluster), tls };
  const nodesFile = kept ? join(dirname(storageFile), 'nodes.json') : undefined;
  const onStore = (report: StoreReport): void => logStore(report, log);
  const onClock = (report: ClockReport): void => logClock(report, log);
  const onSettings = (settings: StoreSettings): void => logSettings(settings, log);
  const onRejection = (report: Rejection): void => logRejection(report, log);
  const onMarkedDead = (dead: NodeIdentity): void => logDeath(dead, node.id, log);
  const counted = { onCommand: store.command, onBeat: store.beat };
  const reports = { ...counted, onStore, onClock, onSettings, onRejection, onMarkedDead };
  return await openRedis({
    ...common,
    ...reports,
    nodesFile,
    name,
    id: node.id,
    redis: await redisOptions(redis, folder),
    port,
  });
}

function logStore(report: StoreReport, log: Logger): void {
  const { store, since } = report;
  if (report.reachable) {
    const seconds = (report.awayMs / 1000).toFixed(1);
    return log.info(
      { event: 'store.back', redis: store, seconds: Number(seconds) },
      `Redis at ${store} is back after ${seconds} s`,
    );
  }
  const { reason } = report;
  log.error(
    { event: 'store.lost', redis: store, since: since.toISOString(), reason },
    `Redis at ${store} cannot be reached since ${since.toISOString()} (${reason}): this node goes on with what it has`,
  );
}

const REJECTED = {
  entries: 'an entry of the configuration in Redis is refused, and what this node knew of it stays',
  rows: 'what Redis has of a node is refused',
  certificates: 'calls with a node are refused',
} as const satisfies Record<Rejection['kind'], string>;

function logRejection({ kind, name, reason }: Rejection, log: Logger): void {
  const advice = kind === 'certificates' ? '' : '. Who has written it does not know the Secret of this node';
  log.error({ event: 'cluster.distrusted', kind, name, reason }, `${REJECTED[kind]}: ${name}: ${reason}${advice}`);
}

function logClock({ isWrong, aheadMs }: ClockReport, log: Logger): void {
  const fields = { event: 'clock.compared', aheadMs } as const;
  if (!isWrong) return log.info(fields, 'the clock of this node agrees with that of Redis again');
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  log.warn(
    fields,
    `the clock of this node is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of Redis: the dates in playlists ` +
      'jump when a publisher changes nodes. Does NTP run on all of them?',
  );
}

function logSettings({ evictionPolicy, writesAlone }: StoreSettings, log: Logger): void {
  if (evictionPolicy !== undefined && evictionPolicy !== 'noeviction')
    log.warn(
      { event: 'store.evicts', evictionPolicy },
      `Redis drops keys when its memory is full (maxmemory-policy ${evictionPolicy}): nodes notice it and restore what they ` +
        'know, but new streams and changes wait meanwhile. Set it to noeviction',
    );
  if (writesAlone)
    log.warn(
      { event: 'store.writesAlone' },
      'Redis acknowledges writes that no replica has (min-replicas-to-write 0): a failover loses the last of them. Nodes ' +
        'restore what they know, but changes of the configuration may be lost with the node that made them. Set it to 1',
    );
}

function logDeath({ id, incarnation }: NodeIdentity, own: string, log: Logger): void {
  const fields = { event: 'node.buried', node: id, incarnation } as const;
  if (id !== own)
    return log.warn(
      fields,
      `node ${id} has died: its connections to Redis and its cluster port are closed. What it had is free`,
    );
  log.error(
    fields,
    'the other nodes took this one for dead, because its connections to Redis were closed and its cluster port refused ' +
      'connections: it has given up its streams and tasks, and joins again. Does a firewall reject connections to the port?',
  );
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
