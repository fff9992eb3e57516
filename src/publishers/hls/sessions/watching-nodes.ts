import type { NodeIdentity } from '#cluster';

interface Watching {
  /** When the node asked for something last, in milliseconds since the epoch. */
  at: number;
  /** How many viewers it has reported. */
  viewers: number;
  /** It is to get the stream from another one, and has not asked since that was said. */
  isLeaving: boolean;
  readonly leave: () => void;
}

/** The other nodes that get a stream from this one, for players of theirs. */
export class WatchingNodes {
  readonly #onCome: (viewers: () => number) => () => void;
  /** By incarnation. */
  readonly #nodes = new Map<string, Watching>();

  /** @param onCome called for each node that comes, with how many viewers it has; its answer is called when that one has gone */
  constructor(onCome: (viewers: () => number) => () => void) {
    this.#onCome = onCome;
  }

  /** How many there are, without those that are to leave. */
  get size(): number {
    let size = 0;
    for (const { isLeaving } of this.#nodes.values()) if (!isLeaving) size++;
    return size;
  }

  has({ incarnation }: NodeIdentity): boolean {
    return this.#nodes.has(incarnation);
  }

  /** Viewers of all of them. */
  get viewers(): number {
    let count = 0;
    for (const { viewers } of this.#nodes.values()) count += viewers;
    return count;
  }

  /** A node asks for something. @param viewers of it and of the nodes that get the stream from it, if it reports them */
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

  /** A node is to get the stream from another one: if it does, that one reports its viewers. */
  dismiss({ incarnation }: NodeIdentity): void {
    const node = this.#nodes.get(incarnation);
    if (node !== undefined) Object.assign(node, { isLeaving: true, viewers: 0 });
  }

  /** Those that have asked for nothing since then have no players any more. @param before milliseconds since the epoch */
  expire(before: number): void {
    for (const [incarnation, { at, leave }] of this.#nodes) {
      if (at >= before) continue;
      this.#nodes.delete(incarnation);
      leave();
    }
  }
}
