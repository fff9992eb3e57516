import type { NodeIdentity } from '../../types.ts';
import type { Nodes } from '../nodes.ts';
import type { Peers } from '../peers.ts';

export interface SilentNodesOptions {
  readonly peers: Pick<Peers, 'ask'>;
  readonly nodes: Pick<Nodes, 'reportLife'>;
  readonly onFault: (error: Error) => void;
}

/** Asks nodes of which Redis does not hear whether they live, and reports that to Redis: a node that lives keeps what exists anyway. */
export class SilentNodes {
  readonly #options: SilentNodesOptions;
  /** Incarnations that are being asked. */
  readonly #asked = new Set<string>();
  #isClosed = false;

  constructor(options: SilentNodesOptions) {
    this.#options = options;
  }

  /** Asks a node, unless it is being asked: every beat demands it until Redis has the answer. */
  ask(node: NodeIdentity): void {
    const { incarnation } = node;
    if (this.#asked.has(incarnation)) return;
    this.#asked.add(incarnation);
    this.#report(node)
      .catch(this.#options.onFault)
      .finally(() => this.#asked.delete(incarnation));
  }

  /** Reports nothing any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
  }

  async #report(node: NodeIdentity): Promise<void> {
    const { peers, nodes } = this.#options;
    const life = await peers.ask(node);
    if (!this.#isClosed) await nodes.reportLife(node, life);
  }
}
