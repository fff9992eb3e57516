/** Counts of the tasks of one kind on this node. */
export interface KindCounts {
  /** Runs that have begun. */
  started: number;
  /** Runs that failed and are tried again. */
  failed: number;
  /** Tasks that another node had before. */
  takenOver: number;
}

/** Totals of the tasks of this node, by kind. */
export class TaskCounts {
  readonly #kinds = new Map<string, KindCounts>();

  get kinds(): ReadonlyMap<string, Readonly<KindCounts>> {
    return this.#kinds;
  }

  of(kind: string): KindCounts {
    const counts = this.#kinds.get(kind) ?? { started: 0, failed: 0, takenOver: 0 };
    this.#kinds.set(kind, counts);
    return counts;
  }
}
