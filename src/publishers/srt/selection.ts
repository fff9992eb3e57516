import type { Playlist } from '../../core/playlist.ts';
import type { OutputStream } from '../../core/stream.ts';
import { eventsBeside, type Track } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';

/** The playlist of a stream id that names none (docs/compatibility.md#urls). */
const DEFAULT_PLAYLIST = 'master';
const DEFAULT_NAME = 'srt_default';

/**
 * `master`: the first picture and one sound, AAC where there is any, for few players know Opus in MPEG-TS. One that was
 * configured under that name stays, and is the default where it is for MPEG-TS.
 */
export function addDefaultPlaylist(output: OutputStream): void {
  const configured = output.playlist(DEFAULT_PLAYLIST);
  if (configured?.options.enableTsPackaging === true) return;
  const fileName = configured === undefined ? DEFAULT_PLAYLIST : DEFAULT_NAME;
  output.followTracks((tracks) => defaultPlaylist(tracks, fileName));
}

function defaultPlaylist(tracks: readonly Track[], fileName: string): Playlist | undefined {
  const sounds = tracks.filter(({ type }) => type === 'audio');
  const videoVariantName = tracks.find(({ type }) => type === 'video')?.name;
  const audioVariantName = (sounds.find(({ codec }) => codec === 'AAC') ?? sounds[0])?.name;
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

/** @throws fileNotFound when there is none of that name, or it is not to be packaged as MPEG-TS */
export function playlistOf(output: OutputStream, fileName?: string): Playlist {
  const names = fileName === undefined ? [DEFAULT_PLAYLIST, DEFAULT_NAME] : [fileName];
  const playlist = names.map((name) => output.playlist(name)).find((one) => one?.options.enableTsPackaging === true);
  if (playlist === undefined) throw kilnError('fileNotFound');
  return playlist;
}

/** The tracks of a playlist's first rendition, and those of events that belong beside them. */
export function tracksOf(tracks: readonly Track[], { renditions: [rendition] }: Playlist): Track[] {
  const { videoVariantName, videoIndex = 0, audioVariantName, audioIndex = 0 } = rendition ?? {};
  const variant = (type: Track['type'], name: string | undefined, index: number): Track[] =>
    tracks.filter((track) => track.type === type && track.name === name).slice(index, index + 1);
  const media = [...variant('video', videoVariantName, videoIndex), ...variant('audio', audioVariantName, audioIndex)];
  return [...media, ...eventsBeside(media, tracks)];
}
