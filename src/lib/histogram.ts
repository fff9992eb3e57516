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

  add(value: number): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] as number)) at++;
    (this.counts[at] as number)++;
    this.sum += value;
  }
}
