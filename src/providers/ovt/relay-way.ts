import { UnavailableError, UnreachableError, type NodeIdentity } from '#cluster';
import type { RelayPrefix } from '../../origins/relay-path.ts';
import type { RelayTree } from '../../origins/relay-tree.ts';
import type { ShunnedNodes } from '../../origins/shunned-nodes.ts';
import { OvtError, OvtSilenceError } from '../../protocols/ovt/error.ts';
import { FULL } from '../../protocols/ovt/message.ts';

/** Nodes on the way to the owner that are asked before the owner has to send the stream itself. */
const MAX_PARENTS = 3;

export interface RelayWayOptions {
  readonly self: NodeIdentity;
  readonly tree: Pick<RelayTree, 'parent'>;
  readonly shunned: ShunnedNodes;
}

/** Asks a node for a stream. Resolves when it sends it. @throws why it does not */
export type Ask = (node: NodeIdentity, prefix: RelayPrefix) => Promise<void>;

/**
 * Asks one node after the other for a stream until one sends it: its owner, then those that pass it on if the owner sends it to
 * enough nodes, and the owner in any case if they do not.
 * @param stream by which nodes are ranked
 * @returns the node that sends it
 * @throws why the owner does not
 */
export async function onWay(
  { self, tree, shunned }: RelayWayOptions,
  stream: string,
  owner: NodeIdentity,
  ask: Ask,
): Promise<NodeIdentity> {
  if (owner.id !== self.id) {
    const refusal = await refusalOf(ask(owner, '/branch/'));
    if (refusal === undefined) return owner;
    const isFull = refusal instanceof OvtError && refusal.code === FULL;
    if (!isFull && !isUnknown(refusal)) throw refusal;
    for (let left = isFull ? MAX_PARENTS : 0; left > 0; left--) {
      const parent = tree.parent(stream, owner, shunned.incarnations);
      if (parent === undefined) break;
      if ((await refusalOf(ask(parent, '/branch/'))) === undefined) return parent;
      shunned.add(parent);
    }
  }
  await ask(owner, '/relay/');
  return owner;
}

/** Whether this keeps a stream from coming in the ordinary course of things. */
export function isOrdinary(error: unknown): error is Error {
  return error instanceof OvtError || error instanceof UnreachableError || error instanceof UnavailableError;
}

async function refusalOf(asked: Promise<void>): Promise<Error | undefined> {
  try {
    await asked;
    return undefined;
  } catch (error) {
    if (isOrdinary(error)) return error;
    throw error;
  }
}

/** A node of an older version closes what it does not know, without an answer. */
function isUnknown(refusal: Error): boolean {
  return refusal instanceof OvtError && !(refusal instanceof OvtSilenceError) && refusal.code === undefined;
}
