/** Bucket bounds, in seconds, for answers that are expected within a second. */
export const ANSWER_SECONDS: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** Counts values in buckets. */
export class Histogram {
  /** Upper bounds of the buckets, ascending; a last bucket holds greater values. */
  readonly bounds: readonly number[];
  /** Values in each bucket alone, not accumulated. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds = ANSWER_SECONDS) {
    this.bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  /** @param times how often the value was measured */
  add(value: number, times = 1): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + times;
    this.sum += value * times;
  }
}

/**
 * Finds a value within its bucket as if the values of a bucket were evenly spread; beyond the last bound it is that bound.
 * @param bounds as of a `Histogram`, and its counts
 * @param rank number of values up to the one that is looked for
 */
export function quantileOf(bounds: readonly number[], counts: readonly number[], rank: number): number {
  let before = 0;
  for (const [at, count] of counts.entries()) {
    const upper = bounds[at];
    if (upper === undefined) break;
    if (before + count >= rank && count > 0) {
      const lower = at === 0 ? 0 : (bounds[at - 1] as number);
      return lower + ((upper - lower) * (rank - before)) / count;
    }
    before += count;
  }
  return bounds.at(-1) ?? 0;
}
