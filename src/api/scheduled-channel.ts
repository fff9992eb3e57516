import Type, { type Static } from 'typebox';
import { localTime } from '../lib/local-time.ts';
import { readScheduleReport, type ScheduleReport } from '../channels/scheduled/report.ts';
import type { ScheduleSpec } from '../channels/scheduled/spec.ts';

/** Name and begin of the program that plays when no other can. */
const FALLBACK = { name: 'fallback', repeat: true, scheduled: '1970-01-01T00:00:00Z' };

/** End of a program without an end: the greatest time of OvenMediaEngine, as in its manual, with the offset of this zone. */
const NEVER = `2262-04-12T08:47:16.854${localTime(Date.UTC(2262, 3, 11)).slice(-6)}`;

const text = (description: string) => Type.String({ description });
const milliseconds = (description: string) => Type.Number({ description: `${description}; milliseconds` });

const Item = Type.Object({
  url: text('`file://` and a path below MediaRootDir, or `stream://vhost/app/stream`'),
  start: Type.Optional(milliseconds('where in the file it begins, 0 by default')),
  duration: Type.Optional(milliseconds('1000 at least; -1, the default: to the end')),
  fallbackOnErr: Type.Optional(
    Type.Boolean({ description: 'the fallback program plays when it fails (default), else the next item' }),
  ),
  forwardData: Type.Optional(
    Type.Boolean({
      description: 'events are passed on: those of a stream, ID3 tags of an MPEG-TS file; false by default',
    }),
  ),
});

const Stream = Type.Object({
  name: Type.String(),
  bypassTranscoder: Type.Optional(Type.Boolean({ description: 'put out as the files have it; false by default' })),
  videoTrack: Type.Optional(Type.Boolean({ description: 'true by default' })),
  audioTrack: Type.Optional(Type.Boolean({ description: 'true by default' })),
  audioMap: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        language: Type.Optional(Type.String()),
        characteristics: Type.Optional(Type.String()),
      }),
    ),
  ),
  errorToleranceDurationMs: Type.Optional(milliseconds('without media for so long an item has failed; 500 by default')),
});

const Scheduled = {
  name: Type.String(),
  scheduled: text('ISO 8601; UTC where it names no zone'),
  repeat: Type.Optional(Type.Boolean({ description: 'the first item follows the last one; false by default' })),
};

const CHANGEABLE = {
  fallbackProgram: Type.Optional(Type.Object({ items: Type.Array(Item) })),
  programs: Type.Optional(Type.Array(Type.Object({ ...Scheduled, items: Type.Array(Item) }))),
};

/** Bodies in the description of the API; `readSchedule` and `readScheduleChange` check them, with texts of their own. */
export const ScheduledChannelCreation = Type.Object({ stream: Stream, ...CHANGEABLE });
export const ScheduledChannelChange = Type.Object(CHANGEABLE);

const ProgramHead = Type.Object({ ...Scheduled, repeat: Type.Boolean() });

const CurrentProgram = Type.Object({
  state: text('onair: an item plays; offair: none does'),
  name: Type.Optional(Type.String()),
  scheduled: Type.Optional(Type.String()),
  end: Type.Optional(text('in the year 2262 where it has none')),
  duration: Type.Optional(milliseconds('-1: without an end')),
  repeat: Type.Optional(Type.Boolean()),
  currentItem: Type.Optional(
    Type.Object({
      url: Type.String(),
      start: Type.Number(),
      duration: Type.Number(),
      currentPosition: milliseconds('since the item began'),
    }),
  ),
});

/** A scheduled channel in answers (docs/compatibility.md#channels). */
export const ScheduledChannel = Type.Object({
  stream: Stream,
  fallbackProgram: Type.Optional(Type.Object({ ...ProgramHead.properties, items: Type.Array(Item) })),
  programs: Type.Array(ProgramHead),
  currentProgram: CurrentProgram,
});

export function scheduledChannel(
  name: string,
  { stream, fallbackProgram, programs }: ScheduleSpec,
  report: unknown,
): Static<typeof ScheduledChannel> {
  const { audioMap, ...rest } = stream;
  return {
    stream: { name, ...rest, ...(audioMap.length > 0 && { audioMap }) },
    ...(fallbackProgram !== undefined && { fallbackProgram: { ...FALLBACK, items: fallbackProgram.items } }),
    programs: programs.map(({ name, scheduled, repeat }) => ({ name, scheduled: localTime(scheduled), repeat })),
    currentProgram: currentProgram(readScheduleReport(report)),
  };
}

function currentProgram(report: ScheduleReport | undefined): Static<typeof CurrentProgram> {
  const { program, item } = report ?? {};
  const state = item === undefined ? 'offair' : 'onair';
  const playing = item && { url: item.url, start: item.start, duration: item.duration, currentPosition: item.position };
  const currentItem = playing && { currentItem: playing };
  // the status may show the fallback program as the scheduled one
  if (program === undefined || (program.scheduled === 0 && program.name === FALLBACK.name))
    return { ...((item ?? program) && { ...FALLBACK, end: NEVER, duration: -1 }), state, ...currentItem };
  const { name, scheduled, ends, repeat } = program;
  return {
    name,
    scheduled: localTime(scheduled),
    end: ends === undefined ? NEVER : localTime(ends),
    duration: ends === undefined ? -1 : ends - scheduled,
    repeat,
    state,
    ...currentItem,
  };
}
