import type { ExecutionContext } from 'ava';
import { Rejections } from '../../../cluster/rejections.ts';
import { PeerPort } from '../../../cluster/peer/port.ts';
import type { NodeIdentity } from '../../../cluster/types.ts';

export interface PeerPortNeeds {
  readonly secrets: readonly string[];
  readonly addressOf: (id: string) => string | undefined;
  /** By how much the cluster's time of the node is ahead of this machine's. */
  readonly aheadMs?: number;
}

/** The cluster port of a node, without a cluster around it. */
export function peerPort(t: ExecutionContext, self: NodeIdentity, { aheadMs = 0, ...needs }: PeerPortNeeds): PeerPort {
  const port = new PeerPort({
    ...needs,
    host: '127.0.0.1',
    port: 0,
    self,
    now: () => Date.now() + aheadMs,
    rejections: new Rejections(({ reason }) => t.fail(reason)),
    onReached: () => {},
    onRefused: () => {},
    onFault: (error) => t.fail(error.message),
  });
  t.teardown(() => port.close());
  return port;
}
