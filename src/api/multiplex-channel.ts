import Type, { type Static } from 'typebox';
import { readMultiplexReport } from '../channels/multiplex/report.ts';
import type { MultiplexSpec } from '../channels/multiplex/spec.ts';

const TrackMapItem = Type.Object({
  sourceTrackName: Type.String({ description: 'variant name of an output track of the source' }),
  newTrackName: Type.String({ description: 'its name in the channel' }),
  bitrateConf: Type.Optional(Type.Number({ description: 'bits per second' })),
  framerateConf: Type.Optional(Type.Number({ description: 'frames per second' })),
  audioIndex: Type.Optional(
    Type.Integer({ description: 'which of several audio tracks of that name, from 0; -1, the default: all' }),
  ),
  publicName: Type.Optional(Type.String()),
  language: Type.Optional(Type.String()),
  characteristics: Type.Optional(Type.String()),
});

const Playlist = Type.Object({
  name: Type.String(),
  fileName: Type.String(),
  options: Type.Optional(
    Type.Object({
      webrtcAutoAbr: Type.Optional(Type.Boolean({ description: 'false by default' })),
      webrtcAudioOnlyFallback: Type.Optional(Type.Boolean({ description: 'false by default' })),
      hlsChunklistPathDepth: Type.Optional(Type.Integer({ description: '-1 by default' })),
      enableTsPackaging: Type.Optional(Type.Boolean({ description: 'false by default' })),
    }),
  ),
  renditions: Type.Array(
    Type.Object({
      name: Type.Optional(Type.String()),
      video: Type.Optional(Type.String({ description: 'a newTrackName' })),
      audio: Type.Optional(Type.String({ description: 'a newTrackName' })),
      videoIndexHint: Type.Optional(Type.Integer()),
      audioIndexHint: Type.Optional(Type.Integer()),
    }),
  ),
});

/** Body in the description of the API; `readMultiplex` checks it, with texts of its own. */
export const MultiplexChannelCreation = Type.Object({
  outputStream: Type.Object({
    name: Type.String(),
    bypassTranscoder: Type.Optional(Type.Boolean({ description: 'put out with these tracks; true by default' })),
  }),
  sourceStreams: Type.Array(
    Type.Object({
      name: Type.String(),
      url: Type.String({ description: '`stream://vhost/app/stream`, an output stream of any node' }),
      trackMap: Type.Array(TrackMapItem),
    }),
    { minItems: 1 },
  ),
  playlists: Type.Optional(Type.Array(Playlist)),
});

/** A multiplex channel in answers (docs/compatibility.md#channels). */
export const MultiplexChannel = Type.Object({
  ...MultiplexChannelCreation.properties,
  state: Type.String({ description: 'None, Pulling, Playing or Stopped' }),
  pullingMessage: Type.Optional(Type.String({ description: 'what it waits for' })),
});

type Playlists = MultiplexSpec['playlists'];
type Tracks = MultiplexSpec['sourceStreams'][number]['trackMap'];

export function multiplexChannel(
  name: string,
  { bypassTranscoder, sourceStreams, playlists }: MultiplexSpec,
  report: unknown,
): Static<typeof MultiplexChannel> {
  const { state, pullingMessage } = readMultiplexReport(report) ?? { state: 'None' };
  return {
    outputStream: { name, bypassTranscoder },
    sourceStreams: sourceStreams.map((source) => ({ ...source, trackMap: source.trackMap.map(shownTrack) })),
    playlists: playlists.map(shownPlaylist),
    state,
    ...(state === 'Pulling' && pullingMessage !== undefined && { pullingMessage }),
  };
}

/** Leaves out options that have their default. */
function shownTrack({ framerateConf, audioIndex, ...track }: Tracks[number]): Static<typeof TrackMapItem> {
  return { ...track, ...(framerateConf !== 0 && { framerateConf }), ...(audioIndex !== -1 && { audioIndex }) };
}

/** Always shows the options that OvenMediaEngine shows, others if they are set (docs/compatibility.md#channels). */
function shownPlaylist({ options, renditions, ...playlist }: Playlists[number]): Static<typeof Playlist> {
  const { webrtcAutoAbr, hlsChunklistPathDepth, webrtcAudioOnlyFallback, enableTsPackaging } = options;
  return {
    ...playlist,
    options: {
      webrtcAutoAbr,
      hlsChunklistPathDepth,
      ...(webrtcAudioOnlyFallback && { webrtcAudioOnlyFallback }),
      ...(enableTsPackaging && { enableTsPackaging }),
    },
    renditions: renditions.map(({ videoIndexHint, audioIndexHint, ...rendition }) => ({
      ...rendition,
      ...(videoIndexHint !== -1 && { videoIndexHint }),
      ...(audioIndexHint !== -1 && { audioIndexHint }),
    })),
  };
}
