import type { ClusterConfig } from './model.ts';

/** Secret of the cluster, and while it is being changed, the previous one as the second. */
export function secretsOf({ secret, previousSecret }: ClusterConfig): readonly string[] {
  return previousSecret === undefined ? [secret] : [secret, previousSecret];
}
