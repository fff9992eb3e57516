import type { OutputProfileConfig } from '../config/model.ts';
import type { Playlist, Rendition } from '../core/playlist.ts';
import type { Track } from '../core/track.ts';
import { expandTemplates } from './rendition-templates.ts';

type PlaylistConfig = OutputProfileConfig['playlists'][number];

/**
 * Converts a playlist of an output profile to the form that publishers read: listed renditions first, then those that
 * templates make of the tracks.
 */
export function profilePlaylist(config: PlaylistConfig, tracks: readonly Track[]): Playlist {
  const { name, fileName, options, renditions, rendition_templates: templates } = config;
  return {
    name,
    fileName,
    options: {
      webrtcAutoAbr: options.webRtcAutoAbr,
      webrtcAudioOnlyFallback: options.webrtcAudioOnlyFallback,
      hlsChunklistPathDepth: options.hlsChunklistPathDepth,
      enableTsPackaging: options.enableTsPackaging,
    },
    ...(!options.enableSubtitles && { hidesSubtitles: true }),
    renditions: [...renditions.map(listedRendition), ...expandTemplates(templates, tracks)],
  };
}

function listedRendition(config: PlaylistConfig['renditions'][number]): Rendition {
  const { name, video, audio, videoIndexHint, audioIndexHint } = config;
  return {
    name,
    videoVariantName: video,
    audioVariantName: audio,
    ...(videoIndexHint < 0 ? {} : { videoIndex: videoIndexHint }),
    ...(audioIndexHint < 0 ? {} : { audioIndex: audioIndexHint }),
  };
}
