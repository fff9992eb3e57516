import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** What is played: a media file, or a stream of the cluster. Times in milliseconds. */
const Item = Type.Object({
  /** `file://` and a path below MediaRootDir, or `stream://vhost/application/stream`. */
  url: Type.String(),
  /** Where in the file it begins. */
  start: Type.Number(),
  /** 1000 at least; -1: to the end of the file, or as long as its program lasts. */
  duration: Type.Number(),
  /** The fallback program plays when it fails; else the next item does. */
  fallbackOnErr: Type.Boolean(),
  /** Events are passed on: the data tracks of a stream, the timed ID3 tags of an MPEG-TS file. */
  forwardData: Type.Boolean(),
});
export type Item = Static<typeof Item>;

/** Whether one item plays on where another is scheduled: what is read and passed on is settled when it is opened. */
export function isSameMedia(one: Item, other: Item): boolean {
  return one.url === other.url && one.start === other.start && one.forwardData === other.forwardData;
}

/** Items that play one after the other from a time on, until the next program begins. */
const Program = Type.Object({
  name: Type.String(),
  /** When it begins: milliseconds since the epoch. */
  scheduled: Type.Number(),
  /** The first item follows the last one. */
  repeat: Type.Boolean(),
  items: Type.Array(Item, { minItems: 1 }),
});
export type Program = Static<typeof Program>;

/** An audio track of the channel; items whose audio is of other languages fill them in order. */
const AudioMapItem = Type.Object({
  name: Type.String(),
  language: Type.Optional(Type.String()),
  characteristics: Type.Optional(Type.String()),
});

/** What a scheduled channel is: the spec of its task, whose id is the name of the stream (docs/compatibility.md#channels). */
const ScheduleSpec = Type.Object({
  stream: Type.Object({
    /** It is put out as the files have it, past the output profiles. */
    bypassTranscoder: Type.Boolean(),
    videoTrack: Type.Boolean(),
    audioTrack: Type.Boolean(),
    audioMap: Type.Array(AudioMapItem),
    /** Without media for so long an item has failed; milliseconds. */
    errorToleranceDurationMs: Type.Number(),
  }),
  /** Plays when an item fails and when nothing is scheduled. */
  fallbackProgram: Type.Optional(Type.Object({ items: Type.Array(Item, { minItems: 1 }) })),
  /** In the order of their times, which differ. */
  programs: Type.Array(Program),
  /** Recurring events of the calendar that the programs come from are followed until then: milliseconds since the epoch. */
  until: Type.Optional(Type.Number()),
});
export type ScheduleSpec = Static<typeof ScheduleSpec>;

/** undefined for what a node of another version may have left. */
export function readScheduleSpec(json: unknown): ScheduleSpec | undefined {
  return Value.Check(ScheduleSpec, json) ? json : undefined;
}
