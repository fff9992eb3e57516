import type { ClusterConfig } from './model.ts';

/** The secret of the cluster; while it is being changed, the one before as the second. */
export function secretsOf({ secret, previousSecret }: ClusterConfig): readonly string[] {
  return previousSecret === undefined ? [secret] : [secret, previousSecret];
}
