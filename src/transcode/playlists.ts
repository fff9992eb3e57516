import type { OutputProfileConfig } from '../config/model.ts';
import type { Playlist } from '../core/playlist.ts';

/** The playlists of a profile in the form publishers read. */
export function profilePlaylists(profile: OutputProfileConfig): Playlist[] {
  return profile.playlists.map((playlist) => ({
    name: playlist.name,
    fileName: playlist.fileName,
    options: {
      webrtcAutoAbr: playlist.options.webRtcAutoAbr,
      webrtcAudioOnlyFallback: playlist.options.webrtcAudioOnlyFallback,
      hlsChunklistPathDepth: playlist.options.hlsChunklistPathDepth,
      enableTsPackaging: playlist.options.enableTsPackaging,
    },
    renditions: playlist.renditions.map(({ name, video, audio }) => ({
      name,
      videoVariantName: video,
      audioVariantName: audio,
    })),
  }));
}
