import type { Cluster, NodeIdentity, PeerRequest, PeerResponse } from '#cluster';
import { tryNode } from './ask-node.ts';

const TIMEOUT_MS = 5000;

/** What came of asking one node. */
export interface Reply {
  readonly node: NodeIdentity;
  /** undefined when there is none: the node cannot be reached, or does not answer in time. */
  readonly response: PeerResponse | undefined;
}

/** The nodes of the cluster but for this one, asked all at once. */
export class OtherNodes {
  readonly #cluster: Pick<Cluster, 'self' | 'nodes' | 'forward'>;

  constructor(cluster: Pick<Cluster, 'self' | 'nodes' | 'forward'>) {
    this.#cluster = cluster;
  }

  get self(): NodeIdentity {
    return this.#cluster.self;
  }

  /** Asks every node that lives. Never rejects for want of an answer. */
  ask(request: PeerRequest, timeoutMs = TIMEOUT_MS): Promise<Reply[]> {
    const { self } = this.#cluster;
    const others = this.#cluster.nodes().filter(({ id, state }) => id !== self.id && state !== 'lost');
    return Promise.all(others.map(async (node) => ({ node, response: await this.askOne(node, request, timeoutMs) })));
  }

  /** Asks one node. @returns undefined when there is no answer */
  askOne(node: NodeIdentity, request: PeerRequest, timeoutMs = TIMEOUT_MS): Promise<PeerResponse | undefined> {
    return tryNode(this.#cluster, node, request, timeoutMs);
  }
}

/** A call without a body. */
export function peerRequest(method: string, path: string): PeerRequest {
  return { method, path, headers: {}, body: Buffer.alloc(0) };
}
