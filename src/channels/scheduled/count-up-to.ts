/** Counts the entries up to and including a time. @param sorted in the order of their times */
export function countUpTo<T>(sorted: readonly T[], time: number, timeOf: (one: T) => number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (timeOf(sorted[middle] as T) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
