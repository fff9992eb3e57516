import { countUpTo } from './count-up-to.ts';
import type { Item, Program } from './spec.ts';

/** Milliseconds of a media file; undefined for a live stream, or an unreadable or unmeasured file. */
export type LengthOf = (url: string) => number | undefined;

/** An item and its planned time. Times in milliseconds since the epoch. */
export interface Planned {
  readonly program: Program;
  readonly item: Item;
  /** Index of the item in its program, from 0. */
  readonly index: number;
  readonly begins: number;
  /** undefined: plays until something else is scheduled. */
  readonly ends: number | undefined;
}

export interface Gap {
  readonly program: undefined;
  readonly begins: number;
  /** undefined: nothing follows. */
  readonly ends: number | undefined;
}

/** A program and the begin of the next one; undefined for the last. */
export interface Running {
  readonly program: Program;
  readonly ends: number | undefined;
}

/** Finds the last program that has begun. @param programs in the order of their times */
export function programAt(programs: readonly Program[], at: number): Running | undefined {
  const index = indexAt(programs, at);
  const program = programs[index];
  return program && { program, ends: programs[index + 1]?.scheduled };
}

/** Programs of a span of time: the one running at its begin, and those that begin in it. */
export function programsIn(programs: readonly Program[], from: number, to: number): Program[] {
  return programs.slice(Math.max(0, indexAt(programs, from))).filter(({ scheduled }) => scheduled < to);
}

/**
 * Finds the item scheduled at a time.
 * @param programs in the order of their times, which are whole milliseconds
 * @returns undefined before the first program, and when the items of a program have run out
 */
export function planAt(programs: readonly Program[], at: number, lengthOf: LengthOf): Planned | undefined {
  const running = programAt(programs, at);
  return running && new ProgramPlan(running, lengthOf).at(at);
}

/**
 * Lists all items and gaps of a span of time. The first entry may begin before the span, the last one may end after
 * it. A gap before the first program begins with the span.
 */
export function* planned(
  programs: readonly Program[],
  from: number,
  to: number,
  lengthOf: LengthOf,
): Generator<Planned | Gap, void, undefined> {
  let gap: number | undefined;
  for (let index = indexAt(programs, from); index < programs.length; index++) {
    const program = programs[index];
    const ends = programs[index + 1]?.scheduled;
    if (program === undefined) {
      gap = from;
      continue;
    }
    if (program.scheduled >= to) break;
    const plan = new ProgramPlan({ program, ends }, lengthOf);
    for (let at = Math.max(from, program.scheduled); at < Math.min(to, ends ?? Infinity);) {
      const entry = plan.at(at);
      if (entry === undefined) {
        gap ??= plan.runsOut;
        break;
      }
      if (gap !== undefined) yield { program: undefined, begins: gap, ends: entry.begins };
      gap = undefined;
      yield entry;
      if (entry.ends === undefined) return;
      at = entry.ends;
    }
  }
  if (gap !== undefined && gap < to) yield { program: undefined, begins: gap, ends: nextBegin(programs, to, lengthOf) };
}

/** Planned length of an item in whole milliseconds; Infinity: without an end. */
export function itemLength({ url, start, duration }: Item, lengthOf: LengthOf): number {
  const asked = duration < 0 ? Infinity : duration;
  const file = lengthOf(url);
  const length = Math.min(asked, file === undefined ? Infinity : file - start);
  return length > 0 ? Math.floor(length) : 0;
}

/** Length of one pass through the items of a program; Infinity: without an end. */
export function programLength({ items }: Program, lengthOf: LengthOf): number {
  return items.reduce((sum, item) => sum + itemLength(item, lengthOf), 0);
}

class ProgramPlan {
  readonly #program: Program;
  readonly #ends: number;
  /** End of each item, since the begin of the program. */
  readonly #overs: readonly number[];
  readonly #total: number;

  constructor({ program, ends = Infinity }: Running, lengthOf: LengthOf) {
    this.#program = program;
    this.#ends = ends;
    let total = 0;
    this.#overs = program.items.map((item) => (total += itemLength(item, lengthOf)));
    this.#total = total;
  }

  /** End of the last item of a program that does not repeat. */
  get runsOut(): number {
    return this.#program.scheduled + this.#total;
  }

  /** @param time between the begin of the program and its end */
  at(time: number): Planned | undefined {
    const program = this.#program;
    let begins = program.scheduled;
    if (program.repeat && this.#total > 0 && this.#total < Infinity)
      begins += Math.floor((time - begins) / this.#total) * this.#total;
    const index = countUpTo(this.#overs, time - begins, (over) => over);
    const item = program.items[index];
    if (item === undefined) return undefined;
    const ends = Math.min(begins + (this.#overs[index] ?? 0), this.#ends);
    begins += this.#overs[index - 1] ?? 0;
    return { program, item, index, begins, ends: ends < Infinity ? ends : undefined };
  }
}

/** -1 before the first program. */
function indexAt(programs: readonly Program[], at: number): number {
  return countUpTo(programs, at, ({ scheduled }) => scheduled) - 1;
}

/** Begin of the first program with something to play, at a time or after it. */
export function nextBegin(programs: readonly Program[], at: number, lengthOf: LengthOf): number | undefined {
  return programs.find((program) => program.scheduled >= at && programLength(program, lengthOf) > 0)?.scheduled;
}
