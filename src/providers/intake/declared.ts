/** What a source says of one track; numbers are 0 where it said nothing, as size and frame rate of sound are. */
export interface DeclaredTrack {
  readonly width: number;
  readonly height: number;
  readonly framerate: number;
  /** Bits per second. */
  readonly bitrate: number;
  readonly language: string | undefined;
}

export const UNDECLARED: DeclaredTrack = Object.freeze({
  width: 0,
  height: 0,
  framerate: 0,
  bitrate: 0,
  language: undefined,
});
