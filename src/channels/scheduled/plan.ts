import { countUpTo } from './count-up-to.ts';
import type { Item, Program } from './spec.ts';

/** Milliseconds of a media file; undefined: not known, because it cannot be read or is a live stream. */
export type LengthOf = (url: string) => number | undefined;

/** An item at its place. Times in milliseconds since the epoch. */
export interface Planned {
  readonly program: Program;
  readonly item: Item;
  /** Of the item in its program, from 0. */
  readonly index: number;
  readonly begins: number;
  /** undefined: it plays until something else is scheduled. */
  readonly ends: number | undefined;
}

/** A time for which nothing is scheduled. */
export interface Gap {
  readonly program: undefined;
  readonly begins: number;
  /** undefined: nothing follows. */
  readonly ends: number | undefined;
}

/** A program and when the next one begins; undefined for the last. */
export interface Running {
  readonly program: Program;
  readonly ends: number | undefined;
}

/** The last program that has begun. @param programs in the order of their times */
export function programAt(programs: readonly Program[], at: number): Running | undefined {
  const index = indexAt(programs, at);
  const program = programs[index];
  return program && { program, ends: programs[index + 1]?.scheduled };
}

/** The programs that a span of time belongs to: the one that has begun before it, and those that begin in it. */
export function programsIn(programs: readonly Program[], from: number, to: number): Program[] {
  return programs.slice(Math.max(0, indexAt(programs, from))).filter(({ scheduled }) => scheduled < to);
}

/**
 * What is scheduled at a time.
 * @param programs in the order of their times, which are whole milliseconds
 * @returns undefined before the first program and when the items of a program have run out
 */
export function planAt(programs: readonly Program[], at: number, lengthOf: LengthOf): Planned | undefined {
  const running = programAt(programs, at);
  return running && new ProgramPlan(running, lengthOf).at(at);
}

/**
 * All that is scheduled in a span of time, with the gaps between. The first entry may begin before the span, the last
 * one may end after it. A gap before the first program begins with the span.
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

/** How long an item plays unless something else is scheduled, in whole milliseconds; Infinity: without an end. */
export function itemLength({ url, start, duration }: Item, lengthOf: LengthOf): number {
  const asked = duration < 0 ? Infinity : duration;
  const file = lengthOf(url);
  const length = Math.min(asked, file === undefined ? Infinity : file - start);
  return length > 0 ? Math.floor(length) : 0;
}

/** How long the items of a program play once; Infinity: without an end. */
export function programLength({ items }: Program, lengthOf: LengthOf): number {
  return items.reduce((sum, item) => sum + itemLength(item, lengthOf), 0);
}

/** Where the items of a program lie. */
class ProgramPlan {
  readonly #program: Program;
  readonly #ends: number;
  /** When each item is over, since the first one began. */
  readonly #overs: readonly number[];
  readonly #total: number;

  constructor({ program, ends = Infinity }: Running, lengthOf: LengthOf) {
    this.#program = program;
    this.#ends = ends;
    let total = 0;
    this.#overs = program.items.map((item) => (total += itemLength(item, lengthOf)));
    this.#total = total;
  }

  /** When a program that has items for a time only has no more. */
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

/** When the first program with something to play begins, at a time or after it. */
export function nextBegin(programs: readonly Program[], at: number, lengthOf: LengthOf): number | undefined {
  return programs.find((program) => program.scheduled >= at && programLength(program, lengthOf) > 0)?.scheduled;
}
