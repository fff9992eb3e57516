/** One line of the bench's table. */
export interface Line {
  readonly what: string;
  readonly measured: string;
  /** What was measured beside it in the same run, to compare with. */
  readonly reference?: string;
  /** What the figure is to be; absent for what has no budget. */
  readonly budget?: string;
  readonly met?: boolean;
}

export interface BenchContext {
  /** A clip of 720p30 at 2.5 Mbit/s, for `loadClip`. */
  readonly clip: string;
  /** For files of a measurement; removed at the end. */
  readonly folder: string;
}

/** One or more lines from one server. */
export interface Measurement {
  readonly name: string;
  run(context: BenchContext): Promise<Line[]>;
}

interface Bounded {
  readonly what: string;
  readonly unit: string;
  readonly digits: number;
  readonly values: readonly number[];
  readonly budget?: readonly number[];
  readonly reference?: string;
}

/** A line whose values must not be above their budget. */
export function atMost({ what, unit, digits, values, budget, reference }: Bounded): Line {
  const text = (numbers: readonly number[]) => `${numbers.map((value) => number(value, digits)).join(' / ')} ${unit}`;
  const line = { what, measured: text(values), reference };
  if (budget === undefined) return line;
  return { ...line, budget: `<= ${text(budget)}`, met: values.every((value, i) => value <= (budget[i] ?? Infinity)) };
}

export function number(value: number, digits = 0): string {
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
