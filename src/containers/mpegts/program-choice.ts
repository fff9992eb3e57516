import { elementaryStreams } from './elementary.ts';
import { readPat, readPmt, type Program, type ProgramMap } from './tables.ts';

/** Programs of a PAT whose PMTs are read. */
const MAX_PROGRAMS = 32;
/** Repetitions of the PAT after which a missing PMT is no longer waited for. */
const MAX_REPETITIONS = 4;
/** Limit of changed tables per second: real ones change rarely, and a change is expensive. */
const MAX_CHANGES = 100;
const CHANGES_WINDOW_MS = 1000;

export interface ProgramChoiceEvents {
  /** Reports each PMT of the chosen program, without repetitions. */
  program(map: ProgramMap): void;
  fault(reason: string): void;
}

interface KnownMap {
  readonly map: ProgramMap;
  /** A copy of the section of `map`. */
  readonly section: Buffer;
  readonly hasMedia: boolean;
}

/**
 * Chooses the program: the first in the PAT that has audio or video, until the PAT no longer lists it, or its PMT has
 * neither.
 */
export class ProgramChoice {
  readonly #events: ProgramChoiceEvents;
  #programs: readonly Program[] = [];
  #pat = Buffer.alloc(0);
  /** PMTs by program number. Tables repeat all the time: known ones are not parsed again. */
  readonly #maps = new Map<number, KnownMap>();
  #chosen: number | undefined;
  #repetitions = 0;
  #changes = 0;
  #changesSince = 0;

  constructor(events: ProgramChoiceEvents) {
    this.#events = events;
  }

  /** @returns the PIDs of the PMTs, if they have changed */
  pat(section: Buffer): ReadonlySet<number> | undefined {
    if (this.#pat.equals(section)) {
      this.#repetitions++;
      this.#choose();
      return undefined;
    }
    if (this.#isTooMuch()) return undefined;
    const programs = readPat(section)?.slice(0, MAX_PROGRAMS);
    if (programs === undefined) return undefined;
    this.#pat = Buffer.from(section);
    this.#programs = programs;
    this.#repetitions = 0;
    for (const number of [...this.#maps.keys()]) if (!this.#has(number)) this.#maps.delete(number);
    if (this.#chosen !== undefined && !this.#has(this.#chosen)) this.#chosen = undefined;
    this.#choose();
    return new Set(programs.map(({ pid }) => pid));
  }

  pmt(pid: number, section: Buffer): void {
    const number = section.length > 4 ? section.readUInt16BE(3) : undefined;
    if (number === undefined || !this.#programs.some((program) => program.number === number && program.pid === pid))
      return;
    if (this.#maps.get(number)?.section.equals(section)) return;
    if (this.#isTooMuch()) return;
    const copy = Buffer.from(section);
    const map = readPmt(copy);
    if (map === undefined) return;
    this.#maps.set(number, { map, section: copy, hasMedia: hasMedia(map) });
    if (this.#chosen === number) this.#events.program(map);
    else this.#choose();
  }

  /** Counts a change of tables. @returns whether to ignore it: a repetition counts later */
  #isTooMuch(): boolean {
    const now = performance.now();
    if (now - this.#changesSince >= CHANGES_WINDOW_MS) {
      this.#changesSince = now;
      this.#changes = 0;
    }
    if (++this.#changes <= MAX_CHANGES) return false;
    this.#events.fault('program tables that change too often');
    return true;
  }

  #has(number: number): boolean {
    return this.#programs.some((program) => program.number === number);
  }

  #choose(): void {
    if (this.#chosen !== undefined && this.#maps.get(this.#chosen)?.hasMedia) return;
    for (const { number } of this.#programs) {
      const known = this.#maps.get(number);
      if (known === undefined) {
        if (this.#repetitions < MAX_REPETITIONS) return;
      } else if (known.hasMedia) {
        this.#chosen = number;
        this.#events.program(known.map);
        return;
      }
    }
  }
}

function hasMedia(map: ProgramMap): boolean {
  return elementaryStreams(map).some((stream) => 'kind' in stream && stream.kind !== 'data');
}
