import type { MultiplexSpec, SourceStream } from '../../../src/channels/multiplex/spec.ts';

type TrackItem = SourceStream['trackMap'][number];

/** A track of a source under a new name, with the rest as it is when nothing is said of it. */
export function trackItem(sourceTrackName: string, newTrackName: string, more: Partial<TrackItem> = {}): TrackItem {
  return { sourceTrackName, newTrackName, bitrateConf: 0, framerateConf: 0, audioIndex: -1, ...more };
}

/** A stream of the application `app` as a source. */
export function source(stream: string, trackMap: TrackItem[]): SourceStream {
  return { name: stream, url: `stream://default/app/${stream}`, trackMap };
}

/** A channel without playlists, past the output profiles. */
export function multiplex(sourceStreams: SourceStream[], more: Partial<MultiplexSpec> = {}): MultiplexSpec {
  return { bypassTranscoder: true, sourceStreams, playlists: [], ...more };
}

/** A playlist with the usual options. */
export function playlist(
  fileName: string,
  renditions: readonly { readonly name: string; readonly video?: string; readonly audio?: string }[],
): MultiplexSpec['playlists'][number] {
  return {
    name: fileName,
    fileName,
    options: {
      webrtcAutoAbr: true,
      webrtcAudioOnlyFallback: false,
      hlsChunklistPathDepth: -1,
      enableTsPackaging: false,
    },
    renditions: renditions.map((rendition) => ({ ...rendition, videoIndexHint: -1, audioIndexHint: -1 })),
  };
}
