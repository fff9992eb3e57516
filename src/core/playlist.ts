export interface Rendition {
  readonly name?: string;
  /** Variant names of output tracks. */
  readonly videoVariantName?: string;
  readonly audioVariantName?: string;
  /** Which of several tracks of the variant, counted from 0 in the order of the stream; absent: any. */
  readonly videoIndex?: number;
  readonly audioIndex?: number;
}

export interface PlaylistOptions {
  readonly webrtcAutoAbr: boolean;
  readonly webrtcAudioOnlyFallback: boolean;
  readonly hlsChunklistPathDepth: number;
  readonly enableTsPackaging: boolean;
}

/** A choice of renditions that a player can ask for by file name. */
export interface Playlist {
  readonly name?: string;
  readonly fileName?: string;
  readonly options: PlaylistOptions;
  /** Leaves out the stream's subtitles. */
  readonly hidesSubtitles?: boolean;
  readonly renditions: readonly Rendition[];
}

/** Playlist of WebRTC viewers whose URL names none. The WebRTC publisher makes it where none is configured. */
export const WEBRTC_DEFAULT = 'webrtc_default';

/** Whether every publisher plays it; only WebRTC plays the playlist called `webrtc_default`. */
export function isShared(playlist: Playlist): boolean {
  return playlist.name !== WEBRTC_DEFAULT;
}
