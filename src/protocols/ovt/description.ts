import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { OvtError } from './error.ts';

/** The only supported version of descriptions. */
const VERSION = 18;
const MAX_TRACKS = 256;
const MAX_PLAYLISTS = 256;
const MAX_RENDITIONS = 256;
const MAX_NAME = 255;
/** Base64 of 64 KiB. */
const MAX_CONFIG = 87_384;
const SIDE = { minimum: 1, maximum: 0xffff_ffff };

const unsigned = (maximum = Number.MAX_SAFE_INTEGER) => Type.Integer({ minimum: 0, maximum });
const unsigned32 = () => unsigned(0xffff_ffff);
const name = () => Type.Optional(Type.String({ maxLength: MAX_NAME }));

const WireRendition = Type.Object({
  name: name(),
  videoTrackName: name(),
  /** Negative: any. */
  videoIndexHint: Type.Optional(Type.Integer()),
  audioTrackName: name(),
  audioIndexHint: Type.Optional(Type.Integer()),
});

const WirePlaylist = Type.Object({
  name: name(),
  fileName: name(),
  options: Type.Optional(
    Type.Object({
      webrtcAutoAbr: Type.Optional(Type.Boolean()),
      hlsChunklistPathDepth: Type.Optional(Type.Integer()),
      enableTsPackaging: Type.Optional(Type.Boolean()),
      /** Extension of Kiln. */
      webrtcAudioOnlyFallback: Type.Optional(Type.Boolean()),
    }),
  ),
  renditions: Type.Optional(Type.Array(WireRendition, { maxItems: MAX_RENDITIONS })),
});

const WireTrack = Type.Object({
  id: unsigned32(),
  name: name(),
  publicName: name(),
  language: name(),
  characteristics: name(),
  codecId: unsigned32(),
  mediaType: unsigned32(),
  /** 0 for a track without a clock. */
  timebaseNum: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
  timebaseDen: Type.Integer({ minimum: 0, maximum: 1_000_000_000 }),
  /** Bits per second. */
  bitrate: unsigned(),
  startFrameTime: unsigned(),
  lastFrameTime: unsigned(),
  videoTrack: Type.Optional(
    Type.Object({
      framerate: Type.Optional(Type.Number({ minimum: 0, maximum: 10_000 })),
      maxFramerate: Type.Optional(Type.Number({ minimum: 0 })),
      width: Type.Optional(unsigned(0xffff)),
      height: Type.Optional(unsigned(0xffff)),
      maxWidth: Type.Optional(unsigned()),
      maxHeight: Type.Optional(unsigned()),
    }),
  ),
  audioTrack: Type.Optional(
    Type.Object({
      samplerate: Type.Optional(unsigned(1_000_000)),
      sampleFormat: Type.Optional(Type.Integer({ minimum: -128, maximum: 127 })),
      layout: Type.Optional(unsigned32()),
    }),
  ),
  /** Extension of Kiln, for event tracks: their events belong only with tracks of this type, `video` or `audio`. */
  eventTarget: name(),
  /** Extension of Kiln, for subtitle tracks. */
  subtitle: Type.Optional(
    Type.Object({ autoSelect: Type.Boolean(), isDefault: Type.Boolean(), forced: Type.Boolean() }),
  ),
  /** Base64. */
  decoderConfig: Type.Optional(Type.String({ maxLength: MAX_CONFIG })),
  /** Extension of Kiln: frames carry the parameter sets that the configuration lacks. */
  inBandSets: Type.Optional(Type.Boolean()),
  /** Extension of Kiln: sample aspect ratio, which is not always in the configuration. */
  sar: Type.Optional(Type.Object({ num: Type.Integer(SIDE), den: Type.Integer(SIDE) })),
  /** Extension of Kiln: code points of ITU-T H.273. */
  colour: Type.Optional(
    Type.Object({
      primaries: unsigned(255),
      transfer: unsigned(255),
      matrix: unsigned(255),
      fullRange: Type.Boolean(),
    }),
  ),
});

const WireDescription = Type.Object({
  version: Type.Literal(VERSION),
  stream: Type.Object({
    appName: Type.Optional(Type.String()),
    streamName: Type.Optional(Type.String()),
    originStreamUUID: Type.Optional(Type.String()),
    /** Absent in notices of changed tracks. */
    playlists: Type.Optional(Type.Array(WirePlaylist, { maxItems: MAX_PLAYLISTS })),
    tracks: Type.Array(WireTrack, { maxItems: MAX_TRACKS }),
  }),
});

export type WireRendition = Static<typeof WireRendition>;
export type WirePlaylist = Static<typeof WirePlaylist>;
export type WireTrack = Static<typeof WireTrack>;
/** Contents of the answer to describe, and of notices of changed tracks (docs/compatibility.md#ovt). */
export type WireDescription = Static<typeof WireDescription>;

/** Validates the contents of a message. @throws OvtError naming what is wrong with them */
export function toDescription(contents: unknown): WireDescription {
  const version = (contents as Partial<WireDescription> | undefined)?.version;
  if (version !== undefined && version !== VERSION)
    throw new OvtError(`description version ${String(version)} is not ${VERSION}`);
  if (!Value.Check(WireDescription, contents)) {
    const [first] = Value.Errors(WireDescription, contents);
    throw new OvtError(`description${first?.instancePath ?? ''} ${first?.message ?? 'is malformed'}`);
  }
  const ids = new Set(contents.stream.tracks.map(({ id }) => id));
  if (ids.size < contents.stream.tracks.length) throw new OvtError('two tracks of a description have one id');
  return contents;
}

export function descriptionOf(stream: WireDescription['stream']): WireDescription {
  return { version: VERSION, stream };
}
