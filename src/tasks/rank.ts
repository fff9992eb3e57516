import { createHash } from 'node:crypto';
import type { NodeRow } from '#cluster';

/** Loads that differ by less are the same: or all would go to whoever is a little less busy. */
const LOAD_STEP = 0.2;

/** Whether a node takes tasks. */
export function isAble({ state, full }: NodeRow): boolean {
  return state === 'ready' && !full;
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
