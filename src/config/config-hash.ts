import { createHmac } from 'node:crypto';
import { secretsOf } from './cluster-secrets.ts';
import type { ServerConfig } from './model.ts';

const CHARACTERS = 16;

/**
 * Hashes of a node's Server.xml, which it sends to the other nodes: one for each secret of the cluster that it knows, so that
 * two nodes can compare theirs while the secret is being changed. None for a node that runs alone.
 */
export interface ConfigHashes {
  readonly configHash?: string;
  readonly formerConfigHash?: string;
}

/** Hashes that another node sent, perhaps one of another version. */
type SentHashes = { readonly [Name in keyof ConfigHashes]?: unknown };

/**
 * Hashes Server.xml without what differs between nodes: addresses, ports and files. Keyed with the cluster's secrets, because
 * the file contains secrets.
 */
export function configHashes({ cluster, type, modules, managers, defaults, virtualHosts }: ServerConfig): ConfigHashes {
  if (cluster === undefined) return {};
  const {
    host,
    api: { accessToken, crossDomains },
  } = managers ?? { host: undefined, api: {} };
  const shared = JSON.stringify({
    type,
    modules,
    names: host?.names,
    accessToken,
    crossDomains,
    defaults,
    virtualHosts,
  });
  const [configHash, formerConfigHash] = secretsOf(cluster).map((secret) =>
    createHmac('sha256', secret).update(shared).digest('hex').slice(0, CHARACTERS),
  );
  return { configHash, ...(formerConfigHash !== undefined && { formerConfigHash }) };
}

/** Whether two nodes were started with the same Server.xml. False if they know no common secret. */
export function isSameConfig(one: SentHashes, other: SentHashes): boolean {
  const [ones, others] = [hashesIn(one), hashesIn(other)];
  return ones.length === 0 ? others.length === 0 : ones.some((hash) => others.includes(hash));
}

function hashesIn({ configHash, formerConfigHash }: SentHashes): unknown[] {
  return [configHash, formerConfigHash].filter((hash) => hash !== undefined);
}
