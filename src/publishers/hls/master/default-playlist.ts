import type { Playlist } from '../../../core/playlist.ts';
import type { OutputStream } from '../../../core/stream.ts';
import type { Track } from '../../../core/track.ts';

/** What a publisher's own playlist is called, and made of. */
export interface DefaultPlaylist {
  readonly name: string;
  readonly fileName: string;
  readonly enableTsPackaging: boolean;
  readonly carries: (track: Track) => boolean;
}

/** Lists it as long as a track can be packaged. One that was configured under its file name stays. */
export function addDefaultPlaylist(output: OutputStream, of: DefaultPlaylist): void {
  if (output.playlist(of.fileName) === undefined) output.followTracks((tracks) => defaultPlaylist(tracks, of));
}

/** Every picture with one sound (docs/compatibility.md#hls): AAC where there is any, for many HLS players know no other. */
function defaultPlaylist(
  tracks: readonly Track[],
  { name, fileName, enableTsPackaging, carries }: DefaultPlaylist,
): Playlist | undefined {
  const packable = tracks.filter(carries);
  if (packable.length === 0) return undefined;
  const sounds = packable.filter(({ type }) => type === 'audio');
  const audioVariantName = (sounds.find(({ codec }) => codec === 'AAC') ?? sounds[0])?.name;
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
