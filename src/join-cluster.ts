import { createHmac } from 'node:crypto';
import { openEmbedded, openRedis, UnavailableError, type Cluster, type RedisOptions } from '#cluster';
import type { ServerConfig } from './config/model.ts';
import type { Logger } from './log.ts';

const EVERY_IPV4 = ['*', '0.0.0.0'];
const HASH_CHARACTERS = 16;

export interface JoinOptions {
  /** File that keeps this node's copy of what the management API creates. */
  readonly storageFile: string;
  readonly log: Logger;
}

/**
 * The cluster that Server.xml names, or one of this node alone.
 * @throws StorageError, and the system's error when the cluster port cannot be had
 */
export async function joinCluster(config: ServerConfig, { storageFile, log }: JoinOptions): Promise<Cluster> {
  const { cluster, managers, bind, ip } = config;
  const kept = (cluster !== undefined || bind.managers.api !== undefined) && managers?.api.storage.enabled;
  const common = {
    file: kept ? storageFile : undefined,
    onDamaged: (movedTo: string, reason: string) =>
      log.error({ movedTo, reason }, 'stored configuration is damaged: kept aside, starting without'),
    // what cannot be reached needs no stack to be understood
    onFault: (err: Error) => log.warn(err instanceof UnavailableError ? { reason: err.message } : { err }, 'a fault of the cluster'),
  };
  if (cluster === undefined) return await openEmbedded({ ...common, id: 'kiln' });
  const { name, secret, redis, node } = cluster;
  const [first = '*'] = ip;
  const host = EVERY_IPV4.includes(first) ? '0.0.0.0' : first;
  const port = { host, port: node.port, advertise: node.advertiseAddress, secret };
  return await openRedis({ ...common, name, id: node.id, redis: redisOptions(redis), port });
}

type RedisConfig = NonNullable<ServerConfig['cluster']>['redis'];

function redisOptions({ url, sentinels, masterName }: RedisConfig): RedisOptions {
  if (url !== undefined) return { url };
  return { sentinels: sentinels.map(address), master: masterName };
}

function address({ host, port }: { readonly host: string; readonly port: number }): string {
  return `redis://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * What tells whether two nodes were started with the same Server.xml, but for what is each node's own: its addresses,
 * ports and files. Undefined for a node that is alone. Keyed, because there are secrets in it.
 */
export function configHash({ cluster, type, modules, managers, defaults, virtualHosts }: ServerConfig): string | undefined {
  if (cluster === undefined) return undefined;
  const { host, api: { accessToken, crossDomains } } = managers ?? { host: undefined, api: {} };
  const shared = { type, modules, names: host?.names, accessToken, crossDomains, defaults, virtualHosts };
  return createHmac('sha256', cluster.secret).update(JSON.stringify(shared)).digest('hex').slice(0, HASH_CHARACTERS);
}
