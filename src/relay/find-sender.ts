import { UnavailableError, UnreachableError, type NodeIdentity } from '#cluster';
import type { RelayPrefix } from '../directory/relay-path.ts';
import type { RelayTree } from '../directory/relay-tree.ts';
import type { ShunnedNodes } from '../directory/shunned-nodes.ts';
import { OvtError, OvtSilenceError } from '../protocols/ovt/error.ts';
import { FULL } from '../protocols/ovt/message.ts';

/** Relaying nodes that are asked for a stream before its owner has to send it itself. */
const MAX_PARENTS = 3;

export interface SenderSearch {
  readonly self: NodeIdentity;
  readonly tree: Pick<RelayTree, 'parent'>;
  /** Nodes that did not send this stream. */
  readonly shunned: ShunnedNodes;
  /** Nodes to which no connection could be made, for any stream. */
  readonly unreachable: ShunnedNodes;
}

/** Steps by which a better node replaces the present sender of a stream. */
export interface Replacing {
  /** Resolves when a node would send the stream. */
  readonly hasRoom: Ask;
  /** Makes a node send the stream in place of the present sender. */
  readonly ask: Ask;
}

/** Asks a node for a stream. Resolves when the node sends it. @throws why it does not */
export type Ask = (node: NodeIdentity, prefix: RelayPrefix) => Promise<void>;

/**
 * Asks nodes for a stream until one sends it. The owner comes first. If it is full, nodes that relay the stream follow. Then
 * the owner has to send it whether it is full or not.
 * @param stream key by which nodes are ranked
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
 * Replaces the present sender of a stream if the relay tree has a better one. The owner is asked only by nodes that may get the
 * stream from it, or do now: a few bytes tell whether it has room.
 * @param present the node that sends the stream now
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
 * @param present search ends at this node: those after it are no better
 * @returns the node that sends the stream; undefined when no node that was asked does
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

/** Tests for an error that relays expect: a node rejects, does not answer, or is unreachable. */
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

/** Tests for an older version: such a node closes a connection without an answer if it does not know the request. */
function isOfOlderVersion(refusal: Error): boolean {
  return refusal instanceof OvtError && !(refusal instanceof OvtSilenceError) && refusal.code === undefined;
}
