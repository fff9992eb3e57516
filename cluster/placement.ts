import type { NodeRow } from './types.ts';

/** Whether a node takes tasks and publishers. A full node does when no node has room; a starting node does not. */
export function isAble({ state, full, info }: NodeRow): boolean {
  return state === 'ready' && (!full || Object.keys(info).length > 0);
}

export function hasRoom(node: NodeRow): boolean {
  return isAble(node) && !node.full;
}

/**
 * Chooses the node for a new pull, task or channel: the less loaded of two ready nodes drawn at random. Two choices spread well
 * where all nodes choose at once by figures that are a second old; the least loaded of all would be overloaded. Full nodes are
 * chosen only when all are full.
 * @param random 0 inclusive to 1 exclusive
 * @returns undefined when no node can take it
 */
export function place(nodes: readonly NodeRow[], random: () => number = Math.random): NodeRow | undefined {
  const roomy = nodes.filter(hasRoom);
  const able = roomy.length > 0 ? roomy : nodes.filter(isAble);
  const first = draw(able, random);
  const second = draw(
    able.filter((node) => node !== first),
    random,
  );
  if (first === undefined || second === undefined) return first;
  return second.load < first.load ? second : first;
}

function draw(nodes: readonly NodeRow[], random: () => number): NodeRow | undefined {
  return nodes[Math.floor(random() * nodes.length)];
}
