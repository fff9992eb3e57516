import { UnavailableError, UnreachableError, type NodeIdentity } from '#cluster';
import type { RelayPrefix } from '../directory/relay-path.ts';
import type { RelayTree } from '../directory/relay-tree.ts';
import type { ShunnedNodes } from '../directory/shunned-nodes.ts';
import { OvtError, OvtSilenceError } from '../protocols/ovt/error.ts';
import { FULL } from '../protocols/ovt/message.ts';

/** Nodes that relay a stream and are asked for it before its owner has to send it itself. */
const MAX_PARENTS = 3;

export interface SenderSearch {
  readonly self: NodeIdentity;
  readonly tree: Pick<RelayTree, 'parent'>;
  /** Nodes that did not send this stream. */
  readonly shunned: ShunnedNodes;
  /** Nodes that could not be connected to, for whatever stream. */
  readonly unreachable: ShunnedNodes;
}

/** How a node takes the place of the one that sends a stream. */
export interface Replacing {
  /** Asks whether a node would send it. Resolves when it would. */
  readonly hasRoom: Ask;
  /** Has a node send it instead of the present one. */
  readonly ask: Ask;
}

/** Asks a node for a stream. Resolves when it sends it. @throws why it does not */
export type Ask = (node: NodeIdentity, prefix: RelayPrefix) => Promise<void>;

/**
 * Asks one node after the other for a stream until one sends it: its owner, then those that relay it if the owner sends it to
 * enough nodes, and the owner in any case if they do not.
 * @param stream by which nodes are ranked
 * @returns the node that sends it
 * @throws why the owner does not
 */
export async function findSender(
  search: SenderSearch,
  stream: string,
  owner: NodeIdentity,
  ask: Ask,
): Promise<NodeIdentity> {
  if (owner.id !== search.self.id) {
    const refusal = await refusalOf(ask(owner, '/branch/'));
    if (refusal === undefined) return owner;
    if (!isFull(refusal) && !isOfOlderVersion(refusal)) throw refusal;
    const parent = isFull(refusal) ? await findParent(search, stream, owner, ask) : undefined;
    if (parent !== undefined) return parent;
  }
  await ask(owner, '/relay/');
  return owner;
}

/**
 * Looks for the node that a stream is meant to come from, while another one sends it. Its owner is asked only by who could
 * come from there, or does: it says in a few bytes whether it has room.
 * @param present the node that sends it
 */
export async function findBetterSender(
  search: SenderSearch,
  stream: string,
  owner: NodeIdentity,
  present: NodeIdentity,
  { hasRoom, ask }: Replacing,
): Promise<void> {
  const place = search.tree.parent(stream, owner) ?? owner;
  if (place.incarnation === present.incarnation) return;
  if (place.incarnation === owner.incarnation) return void (await refusalOf(ask(owner, '/branch/')));
  if (present.incarnation === owner.incarnation) {
    const refusal = await refusalOf(hasRoom(owner, '/branch/'));
    if (refusal === undefined || !isFull(refusal)) return;
  }
  await findParent(search, stream, owner, ask, present);
}

/**
 * @param present no node is asked that is not better than this one
 * @returns the node that sends it; undefined when none of those that were asked does
 */
async function findParent(
  { tree, shunned, unreachable }: SenderSearch,
  stream: string,
  owner: NodeIdentity,
  ask: Ask,
  present?: NodeIdentity,
): Promise<NodeIdentity | undefined> {
  for (let left = MAX_PARENTS; left > 0; left--) {
    const parent = tree.parent(stream, owner, new Set([...shunned.incarnations, ...unreachable.incarnations]));
    if (parent === undefined || parent.incarnation === present?.incarnation) return undefined;
    const refusal = await refusalOf(ask(parent, '/branch/'));
    if (refusal === undefined) return parent;
    (refusal instanceof UnreachableError ? unreachable : shunned).add(parent);
  }
  return undefined;
}

/** Whether an error is one that relays have to expect: a node refuses, does not answer, or cannot be reached. */
export function isRelayFailure(error: unknown): error is Error {
  return error instanceof OvtError || error instanceof UnreachableError || error instanceof UnavailableError;
}

async function refusalOf(asked: Promise<void>): Promise<Error | undefined> {
  try {
    await asked;
    return undefined;
  } catch (error) {
    if (isRelayFailure(error)) return error;
    throw error;
  }
}

function isFull(refusal: Error): boolean {
  return refusal instanceof OvtError && refusal.code === FULL;
}

/** A node of an older version closes a connection for what it does not know, without an answer. */
function isOfOlderVersion(refusal: Error): boolean {
  return refusal instanceof OvtError && !(refusal instanceof OvtSilenceError) && refusal.code === undefined;
}
