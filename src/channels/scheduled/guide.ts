import { findGuideProblems, type GuideProblem } from './guide-problems.ts';
import { planned, type Gap, type LengthOf, type Planned } from './plan.ts';
import type { ScheduleSpec } from './spec.ts';
import { readTime } from './time.ts';

const MAX_ENTRIES = 10_000;
const DAY_MS = 86_400_000;
const MAX_DAYS = 31;

/** Item, fallback or silence of a span of time. Times in milliseconds since the epoch. */
export interface GuideEntry {
  /** `fallback`, `offair`: nothing is scheduled, with or without a fallback program. */
  readonly type: 'item' | 'fallback' | 'offair';
  readonly begins: number;
  /** undefined: lasts until something else is scheduled. */
  readonly ends?: number;
  readonly program?: { readonly name: string; readonly scheduled: number; readonly repeat: boolean };
  readonly item?: {
    readonly url: string;
    /** Index of the item in its program, from 0. */
    readonly index: number;
    /** Start position in the file, in milliseconds. */
    readonly position: number;
    /** Whether its file cannot be read; something else plays in its place. */
    readonly unreadable: boolean;
  };
}

export interface Guide {
  readonly entries: readonly GuideEntry[];
  /** Whether entries exceed the limit of an answer: the next span begins where the last entry ends. */
  readonly isCut: boolean;
  /** Problems of the next 24 hours. */
  readonly problems: readonly GuideProblem[];
}

export interface GuideOptions {
  readonly from: number;
  readonly to: number;
  readonly now: number;
  readonly lengthOf: LengthOf;
  readonly isReadable: (url: string) => boolean;
}

/** Lists what a channel plays in a span of time, and the problems of its schedule from now on. */
export function guideOf(spec: ScheduleSpec, { from, to, now, lengthOf, isReadable }: GuideOptions): Guide {
  const { programs, fallbackProgram } = spec;
  const entries: GuideEntry[] = [];
  let isCut = false;
  for (const entry of planned(programs, from, to, lengthOf)) {
    isCut = entries.length === MAX_ENTRIES;
    if (isCut) break;
    entries.push(entry.program === undefined ? gapEntry(entry, fallbackProgram) : itemEntry(entry, isReadable));
  }
  const problems = findGuideProblems(programs, { from: now, to: now + DAY_MS, lengthOf, isReadable });
  return { entries, isCut, problems };
}

/** Span of a guide, or why the request is invalid. */
export type GuideSpan =
  | { readonly ok: true; readonly from: number; readonly to: number }
  | { readonly ok: false; readonly problem: string };

/** @param from defaults to now @param to defaults to a day later */
export function readGuideSpan(from: string | undefined, to: string | undefined, now: number): GuideSpan {
  const begins = from === undefined ? now : readTime(from);
  if (begins === undefined) return { ok: false, problem: `from: ${JSON.stringify(from)} is not a date and time` };
  const ends = to === undefined ? begins + DAY_MS : readTime(to);
  if (ends === undefined) return { ok: false, problem: `to: ${JSON.stringify(to)} is not a date and time` };
  if (ends <= begins) return { ok: false, problem: 'to: is not after from' };
  if (ends - begins > MAX_DAYS * DAY_MS) return { ok: false, problem: `to: is more than ${MAX_DAYS} days after from` };
  return { ok: true, from: begins, to: ends };
}

function gapEntry({ begins, ends }: Gap, fallback: ScheduleSpec['fallbackProgram']): GuideEntry {
  return { type: fallback === undefined ? 'offair' : 'fallback', begins, ends };
}

function itemEntry({ program, item, index, begins, ends }: Planned, isReadable: (url: string) => boolean): GuideEntry {
  const { name, scheduled, repeat } = program;
  const { url, start: position } = item;
  return {
    type: 'item',
    begins,
    ends,
    program: { name, scheduled, repeat },
    item: { url, index, position, unreadable: !isReadable(url) },
  };
}
