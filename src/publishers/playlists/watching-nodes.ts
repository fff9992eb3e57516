import type { NodeIdentity } from '#cluster';

interface Watching {
  /** When the node asked for something last, in milliseconds since the epoch. */
  at: number;
  /** How many viewers it has told of. */
  viewers: number;
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

  get size(): number {
    return this.#nodes.size;
  }

  /** Viewers of all of them. */
  get viewers(): number {
    let count = 0;
    for (const { viewers } of this.#nodes.values()) count += viewers;
    return count;
  }

  /** A node asks for something. @param viewers that it counts, and those behind it, where it tells them */
  see({ incarnation }: NodeIdentity, viewers?: number): void {
    let node = this.#nodes.get(incarnation);
    if (node === undefined) {
      const come = { at: 0, viewers: 0 };
      node = Object.assign(come, { leave: this.#onCome(() => come.viewers) });
      this.#nodes.set(incarnation, node);
    }
    node.at = Date.now();
    node.viewers = viewers ?? node.viewers;
  }

  /** A node will have the stream from another one. */
  leave({ incarnation }: Pick<NodeIdentity, 'incarnation'>): void {
    const node = this.#nodes.get(incarnation);
    this.#nodes.delete(incarnation);
    node?.leave();
  }

  /** Those that have asked for nothing since then have no players any more. @param before milliseconds since the epoch */
  expire(before: number): void {
    for (const [incarnation, { at }] of this.#nodes) if (at < before) this.leave({ incarnation });
  }
}
