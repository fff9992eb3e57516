import type { Playlist } from '../../../core/playlist.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import type { Track } from '../../../core/track.ts';

export interface DefaultPlaylist {
  readonly name: string;
  readonly fileName: string;
  readonly enableTsPackaging: boolean;
  readonly carries: (track: Track) => boolean;
}

/** Lists the default playlist while a track can be packaged. A configured playlist with its file name takes precedence. */
export function addDefaultPlaylist(output: OutputStream, of: DefaultPlaylist): void {
  if (output.playlist(of.fileName) === undefined) output.followTracks((tracks) => defaultPlaylist(tracks, of));
}

/** Pairs every video with one audio (docs/compatibility.md#hls), preferably AAC: many HLS players support nothing else. */
function defaultPlaylist(
  tracks: readonly Track[],
  { name, fileName, enableTsPackaging, carries }: DefaultPlaylist,
): Playlist | undefined {
  const packable = tracks.filter(carries);
  if (packable.length === 0) return undefined;
  const audios = packable.filter(({ type }) => type === 'audio');
  const audioVariantName = (audios.find(({ codec }) => codec === 'AAC') ?? audios[0])?.name;
  const videos = new Set(packable.filter(({ type }) => type === 'video').map((video) => video.name));
  const renditions =
    videos.size === 0
      ? [{ name: 'default', audioVariantName }]
      : [...videos].map((videoVariantName) => ({ name: videoVariantName, videoVariantName, audioVariantName }));
  return {
    name,
    fileName,
    options: { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, hlsChunklistPathDepth: -1, enableTsPackaging },
    renditions,
  };
}
