import { nextBegin, planned, programLength, type LengthOf } from './plan.ts';
import type { Program } from './spec.ts';

const MAX_PROBLEMS = 1000;

/** Problem of a schedule that an operator should correct. Times in milliseconds since the epoch. */
export interface GuideProblem {
  /**
   * `gap`: nothing is scheduled. `overlap`: items of a program are cut because the next program begins. `unreadable`:
   * the file of an item cannot be read.
   */
  readonly type: 'gap' | 'overlap' | 'unreadable';
  readonly begins: number;
  /** End of a gap, or the uncut end of an overlap; undefined: nothing follows. */
  readonly ends?: number;
  readonly program?: string;
  readonly url?: string;
}

interface ProblemOptions {
  readonly from: number;
  readonly to: number;
  readonly lengthOf: LengthOf;
  readonly isReadable: (url: string) => boolean;
}

/** Problems of a schedule in a span of time, sorted by time. */
export function findGuideProblems(programs: readonly Program[], options: ProblemOptions): GuideProblem[] {
  const { from, to } = options;
  const problems: GuideProblem[] = [];
  const first = programs[0];
  let gap: number | undefined = first === undefined || first.scheduled > from ? from : undefined;
  for (const [index, program] of programs.entries()) {
    const { scheduled, name, repeat } = program;
    const next = programs[index + 1]?.scheduled;
    if (scheduled >= to || problems.length >= MAX_PROBLEMS) break;
    if (next !== undefined && next <= from) continue;
    const length = programLength(program, options.lengthOf);
    if (gap !== undefined && length > 0) problems.push({ type: 'gap', begins: gap, ends: scheduled });
    if (length > 0) gap = undefined;
    problems.push(...unreadable(program, next, options));
    const ends = scheduled + length;
    if (next !== undefined && next < to && !repeat && ends > next && ends < Infinity)
      problems.push({ type: 'overlap', begins: next, ends, program: name });
    if (length === 0 || (!repeat && ends < (next ?? Infinity))) gap ??= Math.max(from, ends);
  }
  if (gap !== undefined && gap < to)
    problems.push({ type: 'gap', begins: gap, ends: nextBegin(programs, to, options.lengthOf) });
  return problems.sort((one, other) => one.begins - other.begins).slice(0, MAX_PROBLEMS);
}

/** Each unreadable item of a program, at its first play. */
function unreadable(program: Program, next: number | undefined, options: ProblemOptions): GuideProblem[] {
  const { from, to, lengthOf, isReadable } = options;
  const found = new Map<number, GuideProblem>();
  let left = program.items.length;
  for (const entry of planned([program], Math.max(from, program.scheduled), Math.min(to, next ?? to), lengthOf)) {
    if (entry.program === undefined || left-- === 0) break;
    const { index, item, begins, ends } = entry;
    if (isReadable(item.url)) continue;
    const end = ends === undefined ? next : Math.min(ends, next ?? ends);
    found.set(index, { type: 'unreadable', begins, ends: end, program: program.name, url: item.url });
  }
  return [...found.values()];
}
