import { createHash } from 'node:crypto';
import type { Cluster, NodeRow } from '#cluster';
import type { TaskDefinition } from './definition.ts';

/** Loads that differ by less are the same: or all would go to whoever is a little less busy. */
const LOAD_STEP = 0.2;

/** Whether a node takes tasks. */
function isAble({ state, full }: NodeRow): boolean {
  return state === 'ready' && !full;
}

/**
 * The other nodes that a task can be handed over to: they certainly have its application, which is stored, or of the same
 * Server.xml as here.
 */
export function heirs(
  { self, nodes }: Pick<Cluster, 'self'> & { readonly nodes: readonly NodeRow[] },
  { stored }: TaskDefinition,
): NodeRow[] {
  const own = nodes.find(({ id }) => id === self.id)?.info.configHash;
  return nodes.filter((node) => node.id !== self.id && isAble(node) && (stored || node.info.configHash === own));
}

/**
 * Ids of the nodes that may take a task, the best first: the same on every node, without asking anybody, and another
 * order for each task. Of the first two the less loaded one is in front.
 */
export function ranked(key: string, nodes: readonly NodeRow[]): string[] {
  const able = nodes.filter(isAble).map((node) => ({ node, weight: weigh(key, node.id) }));
  const [first, second, ...rest] = able.sort((a, b) => (a.weight < b.weight ? -1 : 1)).map(({ node }) => node);
  if (first === undefined || second === undefined) return first === undefined ? [] : [first.id];
  const pair = second.load < first.load - LOAD_STEP ? [second, first] : [first, second];
  return [...pair, ...rest].map(({ id }) => id);
}

function weigh(key: string, id: string): string {
  return createHash('sha256').update(`${key}\n${id}`).digest('hex');
}
