import type { MediaTrack } from '../../core/track.ts';

/** A picture or an audio frame in canonical form, with the times its tag told in milliseconds. */
export interface MediaUnit {
  readonly track: MediaTrack;
  readonly data: Buffer;
  readonly key: boolean;
  readonly time: number;
  /** From decoding to presentation; 0 for sound. */
  readonly compositionTime: number;
  /** Ticks of the track; 0 for a picture, which does not tell. */
  readonly duration: number;
}
