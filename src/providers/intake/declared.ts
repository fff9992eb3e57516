/** Properties that a source declares for one track; numbers are 0 where not declared, as size and frame rate of audio are. */
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
