import type { NodeRow } from './types.ts';

/** Whether a node takes tasks and publishers. One that is full does where nobody has room; one that is starting does not. */
export function isAble({ state, full, info }: NodeRow): boolean {
  return state === 'ready' && (!full || Object.keys(info).length > 0);
}

/** Whether what is placed should come to a node. */
export function hasRoom(node: NodeRow): boolean {
  return isAble(node) && !node.full;
}

/**
 * The node for a new pull, task or channel: of two ready ones, drawn at random, the less loaded. Two choices spread well
 * where everybody chooses at once by figures that are a second old; the least loaded of all would be buried. Full ones
 * come into question where all are full.
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
