import { planAt, type LengthOf, type Planned } from './plan.ts';
import { isSameMedia, type Item, type Program, type ScheduleSpec } from './spec.ts';

/** The name of the program that plays when nothing else does. */
export const FALLBACK = 'fallback';

/** What a channel is to play at which time, when items that failed are passed over. */
export class Timetable {
  readonly #lengthOf: LengthOf;
  readonly #items: NonNullable<ScheduleSpec['fallbackProgram']>['items'];
  #programs: readonly Program[];
  #fallback: Program | undefined;
  /** What the programs that go on after a failed item were in the definition. */
  readonly #defined = new WeakMap<Program, Program>();

  constructor({ programs, fallbackProgram }: ScheduleSpec, lengthOf: LengthOf) {
    this.#programs = programs;
    this.#items = fallbackProgram?.items ?? [];
    this.#lengthOf = lengthOf;
  }

  /** What is scheduled at a time, in milliseconds since the epoch. */
  at(wall: number): Planned | undefined {
    return planAt(this.#programs, wall, this.#lengthOf);
  }

  /** When the next program begins. */
  after(wall: number): number | undefined {
    return this.#programs.find(({ scheduled }) => scheduled > wall)?.scheduled;
  }

  /** What plays while nothing is scheduled, or it fails; it begins with its first item. */
  fallbackAt(wall: number): Planned | undefined {
    if (this.#items.length === 0) return undefined;
    this.#fallback ??= { name: FALLBACK, scheduled: Math.floor(wall), repeat: true, items: this.#items };
    return planAt([this.#fallback], Math.max(wall, this.#fallback.scheduled), this.#lengthOf);
  }

  /** What the fallback program begins with, at a time unless that is settled. */
  fallbackFirst(begins: number): Planned | undefined {
    return this.fallbackAt(this.#fallback?.scheduled ?? begins);
  }

  /** An item of the fallback program plays since a time: the others follow it. @returns undefined where it is none */
  resumeFallback(item: Item, begins: number): Planned | undefined {
    const itself = this.#items.indexOf(item);
    const index = itself < 0 ? this.#items.findIndex((one) => isSameMedia(one, item)) : itself;
    if (index < 0) return undefined;
    const items = [...this.#items.slice(index), ...this.#items.slice(0, index)];
    this.#fallback = { name: FALLBACK, scheduled: begins, repeat: true, items };
    return this.fallbackAt(begins);
  }

  /** The fallback program is over: it will begin anew. */
  endFallback(): void {
    this.#fallback = undefined;
  }

  /** An item cannot be played: the next one of its program begins in its place, at once if it has begun. */
  pass({ program, index, begins }: Planned, wall: number): void {
    const rest = program.items.slice(index + 1);
    const items = program.repeat ? [...rest, ...program.items.slice(0, index + 1)] : rest;
    const next: Program = { ...program, scheduled: Math.ceil(Math.max(begins, wall)), items };
    if (this.#fallback === program) {
      this.#fallback = next;
      return;
    }
    this.#defined.set(next, this.definition(program));
    const others = this.#programs.filter((one) => one !== program || one.scheduled < next.scheduled);
    const at = others.findIndex(({ scheduled }) => scheduled >= next.scheduled);
    if (others[at]?.scheduled === next.scheduled) return;
    this.#programs = at < 0 ? [...others, next] : others.toSpliced(at, 0, next);
  }

  /** The program of the definition that one is, or goes on with. */
  definition(program: Program): Program {
    return this.#defined.get(program) ?? program;
  }
}
