import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** One track of a source and its name in the channel. Bits and frames per second; 0: not declared. */
const TrackMapItem = Type.Object({
  /** Variant name of an output track of the source. */
  sourceTrackName: Type.String(),
  newTrackName: Type.String(),
  bitrateConf: Type.Number(),
  framerateConf: Type.Number(),
  /** Index among several audio tracks of that name; -1: all of them. */
  audioIndex: Type.Number(),
  publicName: Type.Optional(Type.String()),
  language: Type.Optional(Type.String()),
  characteristics: Type.Optional(Type.String()),
});

const SourceStream = Type.Object({
  name: Type.String(),
  /** `stream://vhost/application/stream`: an output stream of any node. */
  url: Type.String(),
  trackMap: Type.Array(TrackMapItem, { minItems: 1 }),
});
export type SourceStream = Static<typeof SourceStream>;

const Rendition = Type.Object({
  name: Type.Optional(Type.String()),
  /** Values of `newTrackName`. */
  video: Type.Optional(Type.String()),
  audio: Type.Optional(Type.String()),
  /** Index among several tracks of that name, from 0; -1: any. */
  videoIndexHint: Type.Number(),
  audioIndexHint: Type.Number(),
});

const Playlist = Type.Object({
  name: Type.String(),
  fileName: Type.String(),
  options: Type.Object({
    webrtcAutoAbr: Type.Boolean(),
    webrtcAudioOnlyFallback: Type.Boolean(),
    hlsChunklistPathDepth: Type.Number(),
    enableTsPackaging: Type.Boolean(),
  }),
  renditions: Type.Array(Rendition, { minItems: 1 }),
});

/** Spec of the task of a multiplex channel, whose id is the name of the stream (docs/compatibility.md#channels). */
const MultiplexSpec = Type.Object({
  /** Whether it is put out with these tracks and playlists, bypassing the output profiles. */
  bypassTranscoder: Type.Boolean(),
  sourceStreams: Type.Array(SourceStream, { minItems: 1 }),
  playlists: Type.Array(Playlist),
});
export type MultiplexSpec = Static<typeof MultiplexSpec>;

/** undefined for a spec of another version. */
export function readMultiplexSpec(json: unknown): MultiplexSpec | undefined {
  return Value.Check(MultiplexSpec, json) ? json : undefined;
}
