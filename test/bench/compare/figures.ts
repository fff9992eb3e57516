import { number } from '../measurement.ts';

/** One value of one run of one server. */
export interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly digits: number;
  readonly value: number;
}

/** The figures of one measurement, run once on each side. */
export interface Pair {
  readonly tree: readonly Figure[];
  readonly commit: readonly Figure[];
}

/** What all runs of one side have measured of one thing. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** One figure of both sides. */
export interface Row {
  readonly what: string;
  readonly unit: string;
  readonly digits: number;
  readonly tree: Spread;
  readonly commit: Spread;
  /** Median of the tree, of that of the commit; NaN when that is 0. */
  readonly ratio: number;
}

/** Widths of the columns of the table. */
const WIDTHS = [62, 32, 32, 11];
export const HEADINGS = ['figure', 'working tree', 'commit', 'tree/commit'];

export function figure(what: string, unit: string, digits: number, value: number): Figure {
  return { what, unit, digits, value };
}

/**
 * Joins what pairs of runs have measured, a row for each figure.
 * @throws Error when a run lacks a figure that the first one has, or has one that is no number
 */
export function rowsOf(pairs: readonly Pair[]): Row[] {
  return (pairs[0]?.tree ?? []).map(({ what, unit, digits }) => {
    const tree = spreadOf(pairs.map((pair) => valueOf(pair.tree, what)));
    const commit = spreadOf(pairs.map((pair) => valueOf(pair.commit, what)));
    const ratio = commit.median === 0 ? Number.NaN : tree.median / commit.median;
    return { what, unit, digits, tree, commit, ratio };
  });
}

/** The median is the middle one, or the mean of the two in the middle. */
function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (place: number) => sorted[Math.floor(place)] ?? Number.NaN;
  return { median: (at((sorted.length - 1) / 2) + at(sorted.length / 2)) / 2, min: at(0), max: at(sorted.length - 1) };
}

function valueOf(figures: readonly Figure[], what: string): number {
  const value = figures.find((one) => one.what === what)?.value ?? Number.NaN;
  if (!Number.isFinite(value)) throw new Error(`no value of: ${what}`);
  return value;
}

/** @returns a line of the table without its end */
export function rowText({ what, unit, digits, tree, commit, ratio }: Row): string {
  const text = ({ median: middle, min, max }: Spread) =>
    `${[number(middle, digits), unit].join(' ').trim()} (${number(min, digits)}..${number(max, digits)})`;
  return cellsText([what, text(tree), text(commit), Number.isNaN(ratio) ? '-' : number(ratio, 2)]);
}

/** @returns cells in their columns; a long one moves those after it */
export function cellsText(cells: readonly string[]): string {
  return cells
    .map((cell, i) => cell.padEnd(WIDTHS[i] ?? 0))
    .join('  ')
    .trimEnd();
}
