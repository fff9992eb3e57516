import { planAt, type LengthOf, type Planned } from './plan.ts';
import { isSameMedia, type Item, type Program, type ScheduleSpec } from './spec.ts';

/** Name of the fallback program. */
export const FALLBACK = 'fallback';

/** Schedule of a channel in which failed items are skipped. */
export class Timetable {
  readonly #lengthOf: LengthOf;
  readonly #items: NonNullable<ScheduleSpec['fallbackProgram']>['items'];
  #programs: readonly Program[];
  #fallback: Program | undefined;
  /** Original programs of those that continue after a failed item. */
  readonly #defined = new WeakMap<Program, Program>();

  constructor({ programs, fallbackProgram }: ScheduleSpec, lengthOf: LengthOf) {
    this.#programs = programs;
    this.#items = fallbackProgram?.items ?? [];
    this.#lengthOf = lengthOf;
  }

  /** Item scheduled at a time, in milliseconds since the epoch. */
  at(wall: number): Planned | undefined {
    return planAt(this.#programs, wall, this.#lengthOf);
  }

  /** Begin of the next program. */
  after(wall: number): number | undefined {
    return this.#programs.find(({ scheduled }) => scheduled > wall)?.scheduled;
  }

  /** Fallback item for a time; the program begins with its first item. */
  fallbackAt(wall: number): Planned | undefined {
    if (this.#items.length === 0) return undefined;
    this.#fallback ??= { name: FALLBACK, scheduled: Math.floor(wall), repeat: true, items: this.#items };
    return planAt([this.#fallback], Math.max(wall, this.#fallback.scheduled), this.#lengthOf);
  }

  /** First fallback item, at the given time unless its begin is settled. */
  fallbackFirst(begins: number): Planned | undefined {
    return this.fallbackAt(this.#fallback?.scheduled ?? begins);
  }

  /** Records that a fallback item plays since a time: the others follow it. @returns undefined for other items */
  resumeFallback(item: Item, begins: number): Planned | undefined {
    const itself = this.#items.indexOf(item);
    const index = itself < 0 ? this.#items.findIndex((one) => isSameMedia(one, item)) : itself;
    if (index < 0) return undefined;
    const items = [...this.#items.slice(index), ...this.#items.slice(0, index)];
    this.#fallback = { name: FALLBACK, scheduled: begins, repeat: true, items };
    return this.fallbackAt(begins);
  }

  /** Ends the fallback program, which will start anew. */
  endFallback(): void {
    this.#fallback = undefined;
  }

  /** Skips a failed item: the next one of its program begins in its place, at once if that time has passed. */
  pass(failed: Planned, wall: number): void {
    const { program } = failed;
    const next = programAfter(failed, wall);
    this.#defined.set(next, this.definition(program));
    const others = this.#programs.filter((one) => one !== program || one.scheduled < next.scheduled);
    const at = others.findIndex(({ scheduled }) => scheduled >= next.scheduled);
    if (others[at]?.scheduled === next.scheduled) return;
    this.#programs = at < 0 ? [...others, next] : others.toSpliced(at, 0, next);
  }

  /** Skips a failed item of the fallback program in the same way. */
  passFallback(failed: Planned, wall: number): void {
    this.#fallback = programAfter(failed, wall);
  }

  /** Original program that the given one is, or continues. */
  definition(program: Program): Program {
    return this.#defined.get(program) ?? program;
  }
}

/** The rest of a program after a failed item. */
function programAfter({ program, index, begins }: Planned, wall: number): Program {
  const rest = program.items.slice(index + 1);
  const items = program.repeat ? [...rest, ...program.items.slice(0, index + 1)] : rest;
  return { ...program, scheduled: Math.ceil(Math.max(begins, wall)), items };
}
