import { isSameIncarnation } from './identity.ts';
import { isAble } from './placement.ts';
import type { NodeIdentity, NodeRow } from './types.ts';

/** Loads that differ by less count as equal: otherwise everything would go to a node that is slightly less busy. */
const LOAD_STEP = 0.2;

/**
 * Ids of the nodes that may take a task or the viewers of a stream, the best first. All nodes compute the same order without
 * communication, and each key has its own. Of the first two the less loaded comes first; full nodes come last.
 * @param former incarnation that has just lost or left the stream or task: it would only delay the others
 */
export function ranked(key: string, nodes: readonly NodeRow[], former?: NodeIdentity): string[] {
  const able = nodes.filter((node) => isAble(node) && !isSameIncarnation(node, former));
  return [false, true].flatMap((isFull) =>
    inOrder(
      key,
      able.filter(({ full }) => full === isFull),
    ),
  );
}

function inOrder(key: string, nodes: readonly NodeRow[]): string[] {
  const weigh = weighing(key);
  const able = nodes.map((node) => ({ node, weight: weigh(node.id) }));
  const [first, second, ...rest] = able
    .sort((a, b) => a.weight - b.weight || (a.node.id < b.node.id ? -1 : 1))
    .map(({ node }) => node);
  if (first === undefined || second === undefined) return first === undefined ? [] : [first.id];
  const pair = second.load < first.load - LOAD_STEP ? [second, first] : [first, second];
  return [...pair, ...rest].map(({ id }) => id);
}

/** Returns the weight of a node id for a key: rendezvous hashing in 32 bits, the same on every node. */
export function weighing(key: string): (id: string) => number {
  const seed = hash(key);
  return (id) => mix(seed ^ hash(id));
}

/** FNV-1a in 32 bits. A node that dies may leave thousands of tasks, each of which is ranked by all others at once. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value;
}

/** Spreads a difference of a few bits over all of them: the finalizer of MurmurHash3. */
function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
