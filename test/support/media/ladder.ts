import type { Playlist, PlaylistOptions } from '../../../src/core/playlist.ts';
import type { VideoTrack } from '../../../src/core/track.ts';
import { h264, type H264Options, type Media } from '../webrtc/webrtc-media.ts';

/** One picture in several qualities whose key frames are at the same times; the first is the best. */
export function ladder(steps: readonly (H264Options & { readonly name: string })[]): Promise<Media<VideoTrack>[]> {
  return Promise.all(steps.map((step, index) => h264({ ...step, id: 10 + index })));
}

/** A playlist of renditions that have the names of their video tracks. */
export function ladderPlaylist(
  names: readonly string[],
  options: Partial<PlaylistOptions> = {},
  audioVariantName: string | undefined = 'audio',
): Playlist {
  return {
    name: 'ladder',
    fileName: 'ladder',
    options: {
      webrtcAutoAbr: true,
      webrtcAudioOnlyFallback: false,
      hlsChunklistPathDepth: -1,
      enableTsPackaging: false,
      ...options,
    },
    renditions: names.map((name) => ({ name, videoVariantName: name, audioVariantName })),
  };
}
