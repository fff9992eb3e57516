/** The value below which a share (0 to 1) of the values is; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** A share as text. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}
