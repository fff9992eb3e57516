import { OutcomeUnknownError, UnreachableError, type Cluster, type NodeIdentity, type PeerRequest, type PeerResponse } from '#cluster';

/** A node that stands still is known to be lost soon: no list waits for it that long. */
const TIMEOUT_MS = 2000;

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
  ask(request: PeerRequest): Promise<Reply[]> {
    const { self } = this.#cluster;
    const others = this.#cluster.nodes().filter(({ id, state }) => id !== self.id && state !== 'lost');
    return Promise.all(others.map(async (node) => ({ node, response: await this.askOne(node, request) })));
  }

  /** Asks one node. @returns undefined when there is no answer */
  async askOne(node: NodeIdentity, request: PeerRequest): Promise<PeerResponse | undefined> {
    try {
      return await this.#cluster.forward(node, request, TIMEOUT_MS);
    } catch (error) {
      if (!(error instanceof UnreachableError || error instanceof OutcomeUnknownError)) throw error;
      return undefined;
    }
  }
}

/** A call without a body. */
export function peerRequest(method: string, path: string): PeerRequest {
  return { method, path, headers: {}, body: Buffer.alloc(0) };
}
