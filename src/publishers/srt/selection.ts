import type { Playlist } from '../../core/playlist.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { eventsBeside, type Track } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';

/** Playlist for a stream id that names none (docs/compatibility.md#urls). */
const DEFAULT_PLAYLIST = 'master';
const DEFAULT_NAME = 'srt_default';

/**
 * Adds the playlist `master`: the first video track and one audio track, AAC if there is one, as few players support Opus in
 * MPEG-TS. A playlist configured under that name stays, and is the default if it enables MPEG-TS.
 */
export function addDefaultPlaylist(output: OutputStream): void {
  const configured = output.playlist(DEFAULT_PLAYLIST);
  if (configured?.options.enableTsPackaging === true) return;
  const fileName = configured === undefined ? DEFAULT_PLAYLIST : DEFAULT_NAME;
  output.followTracks((tracks) => defaultPlaylist(tracks, fileName));
}

function defaultPlaylist(tracks: readonly Track[], fileName: string): Playlist | undefined {
  const audioTracks = tracks.filter(({ type }) => type === 'audio');
  const videoVariantName = tracks.find(({ type }) => type === 'video')?.name;
  const audioVariantName = (audioTracks.find(({ codec }) => codec === 'AAC') ?? audioTracks[0])?.name;
  if (videoVariantName === undefined && audioVariantName === undefined) return undefined;
  return {
    name: DEFAULT_NAME,
    fileName,
    options: {
      webrtcAutoAbr: true,
      webrtcAudioOnlyFallback: false,
      hlsChunklistPathDepth: -1,
      enableTsPackaging: true,
    },
    renditions: [{ name: 'default', videoVariantName, audioVariantName }],
  };
}

/** @throws fileNotFound when no such playlist exists or it does not enable MPEG-TS */
export function playlistOf(output: OutputStream, fileName?: string): Playlist {
  const names = fileName === undefined ? [DEFAULT_PLAYLIST, DEFAULT_NAME] : [fileName];
  const playlist = names.map((name) => output.playlist(name)).find((one) => one?.options.enableTsPackaging === true);
  if (playlist === undefined) throw kilnError('fileNotFound');
  return playlist;
}

/** Tracks of a playlist's first rendition, with their event tracks. */
export function tracksOf(tracks: readonly Track[], { renditions: [rendition] }: Playlist): Track[] {
  const { videoVariantName, videoIndex = 0, audioVariantName, audioIndex = 0 } = rendition ?? {};
  const variant = (type: Track['type'], name: string | undefined, index: number): Track[] =>
    tracks.filter((track) => track.type === type && track.name === name).slice(index, index + 1);
  const media = [...variant('video', videoVariantName, videoIndex), ...variant('audio', audioVariantName, audioIndex)];
  return [...media, ...eventsBeside(media, tracks)];
}
