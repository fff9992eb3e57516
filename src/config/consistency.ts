import type { ServerConfig } from './model.ts';
import { portProblems } from './ports.ts';
import type { Problem } from './resolve.ts';

/** Contradictions between elements that are valid by themselves. */
export function inconsistencies(config: ServerConfig): Problem[] {
  return [...portProblems(config), ...managerProblems(config), ...clusterProblems(config)];
}

function managerProblems({ bind, managers }: ServerConfig): Problem[] {
  const { api } = bind.managers;
  if (api === undefined) return [];
  if (managers === undefined) return [{ path: ['managers'], message: 'is missing: Bind/Managers/API is configured' }];
  if (api.tlsPort !== undefined && managers.host.tls === undefined) {
    return [{ path: ['managers', 'host', 'tls'], message: 'is missing: Bind/Managers/API/TLSPort is configured' }];
  }
  return [];
}

function clusterProblems({ managers, cluster }: ServerConfig): Problem[] {
  if (cluster === undefined) return [];
  if (managers === undefined) return [{ path: ['managers'], message: 'is missing: a cluster needs an access token' }];
  if (managers.api.accessToken !== '') return [];
  const message = 'is empty: a cluster needs one, the same on every node';
  return [{ path: ['managers', 'api', 'accessToken'], message }];
}
