import type { Cluster } from '#cluster';
import type { Readiness } from '../web/health.ts';

export interface NodeState {
  /** Reason why this node is not ready, apart from the cluster. */
  readonly unready: string | undefined;
  /** Draining in order to stop. */
  readonly leaving: boolean;
  readonly cluster: Pick<Cluster, 'draining' | 'state' | 'rejected'> | undefined;
  /** Limits that are reached. */
  readonly full: string | undefined;
}

/** Readiness of a node for new publishers and viewers. */
export function readinessOf({ unready, leaving, cluster, full }: NodeState): Readiness {
  if (unready !== undefined) return { ready: false, reason: unready };
  if (leaving || cluster?.draining) return { ready: false, reason: 'draining' };
  const degraded = cluster === undefined ? undefined : troubleOf(cluster);
  return { ready: true, full, ...(degraded !== undefined && { degraded }) };
}

function troubleOf({ state, rejected }: Pick<Cluster, 'state' | 'rejected'>): string | undefined {
  if (state === 'degraded') return 'the store of the cluster cannot be reached';
  const { entries, rows, certificates } = rejected;
  if (entries + rows + certificates === 0) return undefined;
  return `refused, because it is not authenticated as part of this cluster: configuration entries ${entries}, node rows ${rows}, certificates ${certificates}`;
}
