import type { Playlist } from '../../core/playlist.ts';
import type { OutputStream } from '../../core/stream.ts';
import { isMedia, type AudioTrack, type MediaTrack, type Track, type VideoTrack } from '../../core/track.ts';
import { isRoutable } from '../../webrtc/codecs.ts';

/** The playlist of a URL that names none. */
export const DEFAULT_PLAYLIST = 'webrtc_default';

export interface PlayableRendition {
  readonly name: string;
  readonly video?: VideoTrack;
  readonly audio?: AudioTrack;
}

/** What of a playlist can be sent over WebRTC. */
export interface Selection {
  readonly playlist: Playlist;
  readonly renditions: readonly PlayableRendition[];
  /** The tracks that sessions are made of; every rendition uses some of them. */
  readonly video?: VideoTrack;
  readonly audio?: AudioTrack;
}

export function isPlayable(track: MediaTrack): boolean {
  return isRoutable(track.codec);
}

/** First video and first audio of supported codecs; undefined when there is neither. */
export function defaultPlaylist(tracks: readonly Track[]): Playlist | undefined {
  const video = tracks.find((track) => track.type === 'video' && isPlayable(track));
  const audio = tracks.find((track) => track.type === 'audio' && isPlayable(track));
  if (video === undefined && audio === undefined) return undefined;
  return {
    name: DEFAULT_PLAYLIST,
    fileName: DEFAULT_PLAYLIST,
    options: {
      webrtcAutoAbr: true,
      webrtcAudioOnlyFallback: false,
      hlsChunklistPathDepth: -1,
      enableTsPackaging: false,
    },
    renditions: [{ name: 'default', videoVariantName: video?.name, audioVariantName: audio?.name }],
  };
}

/**
 * The tracks of a playlist that can be sent. A session carries one video and one audio track: the first of
 * each that a rendition names. Renditions of others are left out.
 * @returns undefined when nothing is left
 */
export function select(stream: OutputStream, playlist: Playlist): Selection | undefined {
  const tracks = stream.tracks.filter((track): track is MediaTrack => isMedia(track) && isPlayable(track));
  const named = (type: MediaTrack['type'], name: string | undefined) =>
    name === undefined ? undefined : tracks.find((track) => track.type === type && track.name === name);
  let video: VideoTrack | undefined;
  let audio: AudioTrack | undefined;
  const renditions: PlayableRendition[] = [];
  for (const [index, rendition] of playlist.renditions.entries()) {
    const wanted = {
      video: named('video', rendition.videoVariantName) as VideoTrack | undefined,
      audio: named('audio', rendition.audioVariantName) as AudioTrack | undefined,
    };
    if (wanted.video === undefined && wanted.audio === undefined) continue;
    video ??= wanted.video;
    audio ??= wanted.audio;
    if ((wanted.video ?? video) !== video || (wanted.audio ?? audio) !== audio) continue;
    renditions.push({ name: rendition.name ?? `${index}`, ...wanted });
  }
  return renditions.length === 0 ? undefined : { playlist, renditions, video, audio };
}
