import Type from 'typebox';
import { atLeastOne, contained, flag, integer, parsed, repeated, text, type Fail } from '../../config/blocks.ts';
import { readConfig } from '../../config/read.ts';
import { streamName, type Checked } from '../sources/definition-form.ts';
import { readMediaUrl } from './media-url.ts';
import { programAt } from './plan.ts';
import type { Program, ScheduleSpec } from './spec.ts';
import { readTime } from './time.ts';

export interface NamedSchedule {
  /** Name of the stream. */
  readonly name: string;
  readonly spec: ScheduleSpec;
}

const SHORTEST_MS = 1000;
/** Bound at which sums of thousands of lengths stay exact. */
const LONGEST_MS = 1e12;
const MAX_TOLERANCE_MS = 3_600_000;

const ItemForm = Type.Object(
  {
    url: parsed('file:// and a path below MediaRootDir, or stream://vhost/app/stream', readMediaUrl),
    start: integer(0, { max: LONGEST_MS }),
    duration: integer(-1, { min: -1, max: LONGEST_MS }),
    fallbackOnErr: flag(true),
    forwardData: flag(false),
  },
  {
    complete: (item: { duration: number }) => {
      if (item.duration >= 0) item.duration = Math.max(SHORTEST_MS, item.duration);
    },
  },
);

const ProgramForm = Type.Object({
  name: text({ default: '' }),
  scheduled: parsed('a date and time such as 2026-03-28T20:15:00.000+01:00', readTime),
  repeat: flag(false),
  items: atLeastOne(repeated(ItemForm, 'Item')),
});

const StreamForm = Type.Object(
  {
    name: streamName(),
    bypassTranscoder: flag(false),
    videoTrack: flag(true),
    audioTrack: flag(true),
    audioMap: contained(
      Type.Object({ name: text(), language: Type.Optional(text()), characteristics: Type.Optional(text()) }),
      'Item',
    ),
    errorToleranceDurationMs: integer(500, { max: MAX_TOLERANCE_MS }),
  },
  {
    rule: ({ videoTrack, audioTrack }: { videoTrack: boolean; audioTrack: boolean }, fail: Fail) => {
      if (!videoTrack && !audioTrack) fail([], 'at least one of videoTrack and audioTrack must be true');
    },
  },
);

interface Programs {
  readonly programs?: readonly Pick<Program, 'scheduled'>[];
}

/** Rejects two programs that begin at the same time. */
function differentTimes({ programs = [] }: Programs, fail: Fail): void {
  const seen = new Map<number, number>();
  for (const [index, { scheduled }] of programs.entries()) {
    const other = seen.get(scheduled);
    if (other !== undefined) fail(['programs', index, 'scheduled'], `programs[${other}] begins at the same time`);
    seen.set(scheduled, index);
  }
}

/** Form of a channel in its `.sch` file and in the management API. */
export const ScheduleForm = Type.Object(
  {
    stream: StreamForm,
    fallbackProgram: Type.Optional(Type.Object({ items: repeated(ItemForm, 'Item') })),
    programs: repeated(ProgramForm, 'Program'),
  },
  { rule: differentTimes },
);

const PatchForm = Type.Object(
  {
    fallbackProgram: ScheduleForm.properties.fallbackProgram,
    programs: Type.Optional(Type.Array(ProgramForm)),
  },
  { rule: differentTimes },
);

/**
 * Checks the definition of a channel and fills in defaults. Programs are sorted; programs replaced by later ones by
 * now are dropped.
 * @param json in the management API's form
 * @param now milliseconds since the epoch
 */
export function checkSchedule(json: unknown, now: number): Checked<NamedSchedule> {
  const reading = readConfig(ScheduleForm, json);
  if (!reading.ok) return reading;
  const { stream, fallbackProgram, programs } = reading.config;
  const { name, ...rest } = stream;
  const spec = { stream: rest, ...fallback(fallbackProgram), programs: present(programs, now) };
  return { ok: true, value: { name, spec }, warnings: reading.warnings };
}

/**
 * Checks values that replace those of a channel.
 * @param json `fallbackProgram` (without items it is removed), `programs`, or both
 * @param until of new programs, as in the spec
 */
export function checkSchedulePatch(
  spec: ScheduleSpec,
  json: unknown,
  now: number,
  until?: number,
): Checked<ScheduleSpec> {
  const reading = readConfig(PatchForm, json);
  if (!reading.ok) return reading;
  const { fallbackProgram = spec.fallbackProgram, programs } = reading.config;
  const ends = programs === undefined ? spec.until : until;
  const value = {
    stream: spec.stream,
    ...fallback(fallbackProgram),
    programs: programs === undefined ? spec.programs : present(programs, now),
    ...(ends !== undefined && { until: ends }),
  };
  return { ok: true, value, warnings: reading.warnings };
}

/** Drops a fallback program without items. */
function fallback(program: ScheduleSpec['fallbackProgram']): Pick<ScheduleSpec, 'fallbackProgram'> {
  return program === undefined || program.items.length === 0 ? {} : { fallbackProgram: program };
}

/** Sorted programs, from the one that plays now. */
function present(programs: readonly Program[], now: number): Program[] {
  const sorted = programs.toSorted((one, other) => one.scheduled - other.scheduled);
  const running = programAt(sorted, now)?.program;
  return running === undefined ? sorted : sorted.slice(sorted.indexOf(running));
}
