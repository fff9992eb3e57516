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

/** The playlist that WebRTC makes for itself, of a URL that names none: nothing else is played by it. */
export const WEBRTC_DEFAULT = 'webrtc_default';

/** A choice of renditions that a player can ask for by file name. */
export interface Playlist {
  readonly name?: string;
  readonly fileName?: string;
  readonly options: PlaylistOptions;
  readonly renditions: readonly Rendition[];
}
