import { isAble, type Cluster, type NodeRow } from '#cluster';
import { isSameConfig } from '../config/config-hash.ts';
import type { TaskDefinition } from './definition.ts';

/**
 * Other nodes that a task can be handed over to: those that certainly have its application, which is stored or comes from the
 * same Server.xml.
 */
export function successors(
  { self, nodes }: Pick<Cluster, 'self'> & { readonly nodes: readonly NodeRow[] },
  { stored }: TaskDefinition,
): NodeRow[] {
  const own = nodes.find(({ id }) => id === self.id)?.info ?? {};
  return nodes.filter((node) => node.id !== self.id && isAble(node) && (stored || isSameConfig(node.info, own)));
}
