import type { NodeIdentity } from '#cluster';
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

/** Asks a node for a stream. Resolves with why it does not send it. */
export type Ask = (node: NodeIdentity, prefix: RelayPrefix) => Promise<Error | undefined>;

/**
 * Asks one node after the other for a stream until one sends it: its owner, then those that pass it on if the owner sends it to
 * enough nodes, and the owner in any case if they do not.
 * @param stream by which nodes are ranked
 * @returns the node that sends it
 * @throws why the owner does not, as `ask` gave it
 */
export async function onWay(
  { self, tree, shunned }: RelayWayOptions,
  stream: string,
  owner: NodeIdentity,
  ask: Ask,
): Promise<NodeIdentity> {
  if (owner.id !== self.id) {
    const refusal = await ask(owner, '/branch/');
    if (refusal === undefined) return owner;
    if (!(refusal instanceof OvtError) || refusal instanceof OvtSilenceError) throw refusal;
    const { code } = refusal;
    // a node of an older version closes the connection
    if (code !== FULL && code !== undefined) throw refusal;
    for (let left = code === FULL ? MAX_PARENTS : 0; left > 0; left--) {
      const parent = tree.parent(stream, owner, shunned.incarnations);
      if (parent === undefined) break;
      if ((await ask(parent, '/branch/')) === undefined) return parent;
      shunned.add(parent);
    }
  }
  const failure = await ask(owner, '/relay/');
  if (failure !== undefined) throw failure;
  return owner;
}
