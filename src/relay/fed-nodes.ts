import type { OutputStream } from '../core/output-stream.ts';
import type { RelayPrefix } from '../directory/relay-path.ts';

/** One connection by which a node gets a stream. */
interface Feed {
  readonly prefix: RelayPrefix;
}

/** Nodes to which this one sends its own output streams and the streams it relays. */
export class FedNodes {
  /** By output stream and id of the node. */
  readonly #fed = new Map<OutputStream, Map<string, Set<Feed>>>();

  /** Number of nodes that get a stream, `node` not counted. */
  countWithout(output: OutputStream, node: string): number {
    const nodes = this.#fed.get(output);
    return (nodes?.size ?? 0) - (nodes?.has(node) === true ? 1 : 0);
  }

  /**
   * Number of nodes that get streams, counted once for each stream.
   * @returns `branch`: nodes with a place in the relay tree; `relay`: nodes that the owner serves beyond it
   */
  get counts(): Readonly<Record<'branch' | 'relay', number>> {
    const counts = { branch: 0, relay: 0 };
    for (const nodes of this.#fed.values())
      for (const feeds of nodes.values())
        counts[[...feeds].some(({ prefix }) => prefix === '/branch/') ? 'branch' : 'relay']++;
    return counts;
  }

  /** Counts a node as fed until the returned function is called. */
  add(output: OutputStream, node: string, prefix: RelayPrefix): () => void {
    const nodes = this.#fed.get(output) ?? new Map<string, Set<Feed>>();
    const feeds = nodes.get(node) ?? new Set();
    const feed = { prefix };
    this.#fed.set(output, nodes.set(node, feeds.add(feed)));
    return () => {
      feeds.delete(feed);
      if (feeds.size === 0) nodes.delete(node);
      if (nodes.size === 0) this.#fed.delete(output);
    };
  }
}
