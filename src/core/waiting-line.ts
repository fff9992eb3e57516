/** Packets or bytes that began to wait together. */
interface Batch {
  /** On the monotonic clock, in milliseconds: when the first of it came. */
  readonly at: number;
  count: number;
}

/** Arrivals within so many milliseconds are one batch. */
const TOGETHER_MS = 2;
/** Beyond it neighbours become one batch: those of a long line are close to each other by its length. */
const MOST_BATCHES = 256;

/** Counts what waits for one reader, in its order, and for how long. */
export class WaitingLine {
  /** Oldest first. */
  #batches: Batch[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** More waits. @param now on the monotonic clock, in milliseconds */
  add(count: number, now: number): void {
    this.#size += count;
    const last = this.#batches.at(-1);
    if (last !== undefined && now - last.at < TOGETHER_MS) {
      last.count += count;
      return;
    }
    this.#batches.push({ at: now, count });
    if (this.#batches.length > MOST_BATCHES) this.#batches = inPairs(this.#batches);
  }

  /** The oldest leave. @param report receives how many of them have waited for how many milliseconds */
  take(count: number, now: number, report: (milliseconds: number, count: number) => void): void {
    let left = Math.min(count, this.#size);
    this.#size -= left;
    let gone = 0;
    while (left > 0) {
      const batch = this.#batches[gone] as Batch;
      const taken = Math.min(left, batch.count);
      report(now - batch.at, taken);
      left -= taken;
      batch.count -= taken;
      if (batch.count === 0) gone++;
    }
    if (gone > 0) this.#batches.splice(0, gone);
  }

  /** Nothing waits any more. */
  clear(): void {
    this.#size = 0;
    this.#batches = [];
  }

  /** Reports all that waits, as `take` does. */
  each(now: number, report: (milliseconds: number, count: number) => void): void {
    for (const { at, count } of this.#batches) report(now - at, count);
  }
}

function inPairs(batches: readonly Batch[]): Batch[] {
  return batches.flatMap(({ at, count }, index) =>
    index % 2 === 1 ? [] : [{ at, count: count + (batches[index + 1]?.count ?? 0) }],
  );
}
