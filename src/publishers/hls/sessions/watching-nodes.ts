import type { NodeIdentity } from '#cluster';

interface Watching {
  /** Last request, in milliseconds since the epoch. */
  at: number;
  /** Viewers that it has reported. */
  viewers: number;
  /** The node was sent to another one for the stream, and has not asked since. */
  isLeaving: boolean;
  readonly leave: () => void;
}

/** Other nodes that get a stream from this one, for their players. */
export class WatchingNodes {
  readonly #onCome: (viewers: () => number) => () => void;
  /** By incarnation. */
  readonly #nodes = new Map<string, Watching>();

  /** @param onCome called for each new node, with its number of viewers; the returned function is called when the node has left */
  constructor(onCome: (viewers: () => number) => () => void) {
    this.#onCome = onCome;
  }

  /** Number of nodes, without those that were dismissed. */
  get size(): number {
    let size = 0;
    for (const { isLeaving } of this.#nodes.values()) if (!isLeaving) size++;
    return size;
  }

  has({ incarnation }: NodeIdentity): boolean {
    return this.#nodes.has(incarnation);
  }

  get viewers(): number {
    let count = 0;
    for (const { viewers } of this.#nodes.values()) count += viewers;
    return count;
  }

  /** Notes a request of a node. @param viewers of it and of the nodes that get the stream from it, if it reports them */
  see({ incarnation }: NodeIdentity, viewers?: number): void {
    let node = this.#nodes.get(incarnation);
    if (node === undefined) {
      const come = { at: 0, viewers: 0, isLeaving: false };
      node = Object.assign(come, { leave: this.#onCome(() => come.viewers) });
      this.#nodes.set(incarnation, node);
    }
    node.at = Date.now();
    node.viewers = viewers ?? node.viewers;
    node.isLeaving = false;
  }

  /** Notes that a node was sent to another one for the stream, which reports its viewers then. */
  dismiss({ incarnation }: NodeIdentity): void {
    const node = this.#nodes.get(incarnation);
    if (node !== undefined) Object.assign(node, { isLeaving: true, viewers: 0 });
  }

  /** Removes nodes without requests since then, which have no players any more. @param before milliseconds since the epoch */
  expire(before: number): void {
    for (const [incarnation, { at, leave }] of this.#nodes) {
      if (at >= before) continue;
      this.#nodes.delete(incarnation);
      leave();
    }
  }
}
