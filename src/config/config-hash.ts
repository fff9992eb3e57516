import { createHmac } from 'node:crypto';
import { secretsOf } from './cluster-secrets.ts';
import type { ServerConfig } from './model.ts';

const CHARACTERS = 16;

/**
 * What a node tells the others of its Server.xml: one hash by each secret of the cluster that it knows, so that two nodes
 * can compare theirs while the secret is being changed. Nothing for a node that is alone.
 */
export interface ConfigHashes {
  readonly configHash?: string;
  /** By the secret before. */
  readonly formerConfigHash?: string;
}

/** What other nodes tell, which may be of another version. */
type Told = { readonly [Name in keyof ConfigHashes]?: unknown };

/**
 * What tells whether two nodes were started with the same Server.xml, but for what is each node's own: its addresses,
 * ports and files. Keyed, because there are secrets in it.
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

/** Whether two nodes were started with the same Server.xml, as far as they know a common secret. */
export function isSameConfig(one: Told, other: Told): boolean {
  const [ones, others] = [hashesIn(one), hashesIn(other)];
  return ones.length === 0 ? others.length === 0 : ones.some((hash) => others.includes(hash));
}

function hashesIn({ configHash, formerConfigHash }: Told): unknown[] {
  return [configHash, formerConfigHash].filter((hash) => hash !== undefined);
}
