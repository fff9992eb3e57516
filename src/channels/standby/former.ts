import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { PROVIDER_KINDS } from '../../core/counters.ts';
import { SOURCE_TYPES, type Source } from '../../core/source.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { MediaTrack } from '../../core/track.ts';
import type { SlateTrack } from './slate-command.ts';

/** Key of what a stream keeps for the next node that has it. */
export const FORMER = 'standby';

const MAX_TRACKS = 32;
const Timebase = Type.Object({ num: Type.Integer({ minimum: 1 }), den: Type.Integer({ minimum: 1 }) });
const common = {
  id: Type.Integer(),
  name: Type.String(),
  timebase: Timebase,
  bypass: Type.Boolean(),
  bitrate: Type.Number(),
  config: Type.Optional(Type.String()),
  language: Type.Optional(Type.String()),
  characteristics: Type.Optional(Type.String()),
  publicName: Type.Optional(Type.String()),
};
const side = () => Type.Integer({ minimum: 0, maximum: 16_384 });
const Track = Type.Union([
  Type.Object({
    type: Type.Literal('video'),
    codec: Type.Enum(['H264', 'H265', 'AV1', 'VP8', 'VP9']),
    ...common,
    ...{ width: side(), height: side(), framerate: Type.Number(), keyFrameInterval: Type.Number() },
    sar: Type.Optional(Timebase),
    colour: Type.Optional(
      Type.Object({
        ...{ primaries: Type.Integer(), transfer: Type.Integer(), matrix: Type.Integer() },
        fullRange: Type.Boolean(),
      }),
    ),
  }),
  Type.Object({
    type: Type.Literal('audio'),
    codec: Type.Enum(['AAC', 'OPUS', 'MP3', 'MP2', 'AC3', 'EAC3', 'FLAC', 'PCMA', 'PCMU', 'G722']),
    ...common,
    samplerate: Type.Integer({ minimum: 1, maximum: 768_000 }),
    channels: Type.Integer({ minimum: 1, maximum: 64 }),
  }),
]);
const Kept = Type.Object({
  source: Type.Object({
    type: Type.Enum([...SOURCE_TYPES]),
    kind: Type.Enum([...PROVIDER_KINDS]),
    url: Type.Optional(Type.String()),
  }),
  tracks: Type.Array(
    Type.Object({ track: Track, framerate: Type.Number({ minimum: 0 }), bitrate: Type.Number({ minimum: 0 }) }),
    { minItems: 1, maxItems: MAX_TRACKS },
  ),
});

/** The last publisher of a stream: its source, and the tracks that a slate has to be like. */
export interface Former {
  readonly source: Source;
  readonly tracks: readonly SlateTrack[];
}

/** JSON to keep, for `readFormer`. */
export function writeFormer({ source: { type, kind, url }, tracks }: Former): Static<typeof Kept> {
  return {
    source: { type, kind, ...(url !== undefined && { url }) },
    tracks: tracks.map(({ track, ...measured }) => {
      const { config, ...rest } = track;
      const shown = { ...rest, ...(config !== undefined && { config: config.toString('base64') }) };
      return { track: shown as Static<typeof Track>, ...measured };
    }),
  };
}

/** undefined for a value that a node of another version may have kept. */
export function readFormer(value: unknown): Former | undefined {
  if (!Value.Check(Kept, value)) return undefined;
  const { source, tracks } = value;
  return {
    source,
    tracks: tracks.map(({ track: { config, ...rest }, ...measured }) => {
      const track = { ...rest, ...(config !== undefined && { config: Buffer.from(config, 'base64') }) };
      return { track: Object.freeze(track) as MediaTrack, ...measured };
    }),
  };
}

/** Tracks of a slate that is shown before the first publisher. */
export const FIRST: Former = {
  source: { type: 'Unknown', kind: 'file' },
  tracks: [
    {
      track: Object.freeze({
        ...{ id: 0, name: 'Video', type: 'video', codec: 'H264', timebase: VIDEO_TIMEBASE, bypass: false },
        ...{ width: 1280, height: 720, bitrate: 0, framerate: 0, keyFrameInterval: 0 },
      } as const),
      framerate: 30,
      bitrate: 0,
    },
    {
      track: Object.freeze({
        ...{ id: 1, name: 'Audio', type: 'audio', codec: 'AAC', timebase: { num: 1, den: 48_000 }, bypass: false },
        ...{ samplerate: 48_000, channels: 2, bitrate: 0 },
      } as const),
      framerate: 0,
      bitrate: 0,
    },
  ],
};
