import type { Playlist } from '../../core/playlist.ts';
import type { MultiplexSpec } from './spec.ts';

/** Converts playlists of a channel to the form that publishers read. */
export function channelPlaylists(playlists: MultiplexSpec['playlists']): Playlist[] {
  return playlists.map(({ name, fileName, options, renditions }) => ({
    name,
    fileName,
    options,
    renditions: renditions.map(({ name: rendition, video, audio, videoIndexHint, audioIndexHint }) => ({
      ...(rendition !== undefined && { name: rendition }),
      ...(video !== undefined && { videoVariantName: video }),
      ...(audio !== undefined && { audioVariantName: audio }),
      ...(videoIndexHint >= 0 && { videoIndex: videoIndexHint }),
      ...(audioIndexHint >= 0 && { audioIndex: audioIndexHint }),
    })),
  }));
}
