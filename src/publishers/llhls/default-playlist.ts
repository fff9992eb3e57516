import { isPackable } from '../../containers/fmp4/sample-entry.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';

const NAME = 'llhls_default';
const FILE_NAME = 'llhls';

/** `llhls.m3u8`, as long as a track can be packaged. One that was configured under that name stays. */
export function addDefaultPlaylist(output: OutputStream): void {
  if (output.playlist(FILE_NAME) === undefined) output.followTracks(defaultPlaylist);
}

/** Every picture with one sound (facts/05-hls.md): AAC where there is any, for many HLS players know no other. */
function defaultPlaylist(tracks: readonly Track[]): Playlist | undefined {
  const packable = tracks.filter(isPackable);
  if (packable.length === 0) return undefined;
  const sounds = packable.filter(({ type }) => type === 'audio');
  const audioVariantName = (sounds.find(({ codec }) => codec === 'AAC') ?? sounds[0])?.name;
  const videos = new Set(packable.filter(({ type }) => type === 'video').map(({ name }) => name));
  const renditions =
    videos.size === 0
      ? [{ name: 'default', audioVariantName }]
      : [...videos].map((videoVariantName) => ({ name: videoVariantName, videoVariantName, audioVariantName }));
  return {
    name: NAME,
    fileName: FILE_NAME,
    options: { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, hlsChunklistPathDepth: -1, enableTsPackaging: false },
    renditions,
  };
}
