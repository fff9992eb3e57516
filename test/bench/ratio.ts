import { median } from '../support/load/statistics.ts';
import { number, type Line } from './measurement.ts';

/** Rounds that a ratio is judged by, or more. */
export const ROUNDS = 5;
/** How much worse than `reached` a ratio may become. */
const LEEWAY = 1.25;

/** A figure and its reference, which no change of Kiln can move, measured side by side in some rounds. */
export interface Compared {
  readonly what: string;
  readonly unit: string;
  readonly digits: number;
  /** One of each round. */
  readonly values: readonly number[];
  readonly references: readonly number[];
  /** Name of the reference. */
  readonly of: string;
  /** Ratio that a quiet machine has shown; the budget is 25 % worse. Absent for what has no such budget. */
  readonly reached?: number;
  /** Budget of the value itself, where that is tighter. */
  readonly most?: number;
  /** What else was measured. */
  readonly note?: string;
}

/** A line about a cost: less is better. @throws Error when there are fewer than five rounds, or one is no number */
export function costLine(compared: Compared): Line {
  const { unit, digits, values, reached, most } = compared;
  const value = median(values);
  const ratio = ratioOf(compared);
  const times = reached === undefined ? undefined : reached * LEEWAY;
  const budget = [
    ...(times === undefined ? [] : [`${number(times, 2)} times`]),
    ...(most === undefined ? [] : [`${number(most, digits)} ${unit}`]),
  ];
  const line = lineOf(compared, `${number(value, digits)} ${unit}, ${number(ratio, 2)} times`);
  if (budget.length === 0) return line;
  return {
    ...line,
    budget: `<= ${budget.join(', ')}`,
    met: ratio <= (times ?? Infinity) && value <= (most ?? Infinity),
  };
}

/** A line about a rate: more is better. @throws Error as `costLine` does */
export function rateLine(compared: Compared): Line {
  const { unit, digits, values, reached } = compared;
  const ratio = ratioOf(compared);
  const line = lineOf(compared, `${number(median(values), digits)} ${unit}, ${number(ratio, 2)} of it`);
  if (reached === undefined) return line;
  const share = reached / LEEWAY;
  return { ...line, budget: `>= ${number(share, 2)} of it`, met: ratio >= share };
}

/**
 * The median of the ratios of all rounds: both sides of a round had the same machine, whatever else that did.
 * @throws Error when there are fewer than five rounds, or a ratio is no number
 */
export function ratioOf({ what, values, references }: Pick<Compared, 'what' | 'values' | 'references'>): number {
  if (values.length < ROUNDS) throw new Error(`${values.length} rounds instead of ${ROUNDS}: ${what}`);
  const ratios = values.map((value, round) => value / (references[round] ?? Number.NaN));
  if (!ratios.every(Number.isFinite)) throw new Error(`no ratio in some round: ${what}`);
  return median(ratios);
}

function lineOf({ what, unit, digits, references, of, note }: Compared, measured: string): Line {
  const reference = `${of} ${number(median(references), digits)} ${unit}`;
  return { what, measured, reference: note === undefined ? reference : `${reference}; ${note}` };
}
