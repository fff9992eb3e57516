import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** A media file, or a stream of the cluster. Times in milliseconds. */
const Item = Type.Object({
  /** `file://` and a path below MediaRootDir, or `stream://vhost/application/stream`. */
  url: Type.String(),
  /** Start position in the file. */
  start: Type.Number(),
  /** At least 1000; -1: to the end of the file, or as long as its program lasts. */
  duration: Type.Number(),
  /** Whether the fallback program plays when it fails; otherwise the next item does. */
  fallbackOnErr: Type.Boolean(),
  /** Whether events are passed on: data tracks of a stream, timed ID3 tags of an MPEG-TS file. */
  forwardData: Type.Boolean(),
});
export type Item = Static<typeof Item>;

/** Whether an item that plays can continue as another: media and forwarding are fixed when it is opened. */
export function isSameMedia(one: Item, other: Item): boolean {
  return one.url === other.url && one.start === other.start && one.forwardData === other.forwardData;
}

/** Items that play one after the other from a time on, until the next program begins. */
const Program = Type.Object({
  name: Type.String(),
  /** Begin, in milliseconds since the epoch. */
  scheduled: Type.Number(),
  /** Whether the first item follows the last one. */
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

/** Spec of the task of a scheduled channel, whose id is the name of the stream (docs/compatibility.md#channels). */
const ScheduleSpec = Type.Object({
  stream: Type.Object({
    /** Whether it is put out as the files have it, bypassing the output profiles. */
    bypassTranscoder: Type.Boolean(),
    videoTrack: Type.Boolean(),
    audioTrack: Type.Boolean(),
    audioMap: Type.Array(AudioMapItem),
    /** An item fails after this time without media; milliseconds. */
    errorToleranceDurationMs: Type.Number(),
  }),
  fallbackProgram: Type.Optional(Type.Object({ items: Type.Array(Item, { minItems: 1 }) })),
  /** In the order of their times, which differ. */
  programs: Type.Array(Program),
  /** Time until which recurring events of an uploaded calendar are followed: milliseconds since the epoch. */
  until: Type.Optional(Type.Number()),
});
export type ScheduleSpec = Static<typeof ScheduleSpec>;

/** undefined for a spec of another version. */
export function readScheduleSpec(json: unknown): ScheduleSpec | undefined {
  return Value.Check(ScheduleSpec, json) ? json : undefined;
}
