import type { AudioTrack, VideoTrack } from '../../core/track.ts';

/** A picture in canonical form, with the times its tag told in milliseconds. */
export interface VideoUnit {
  readonly track: VideoTrack;
  readonly data: Buffer;
  readonly key: boolean;
  readonly time: number;
  readonly compositionTime: number;
}

/** An audio frame in canonical form; its duration counts ticks of the track. */
export interface AudioUnit {
  readonly track: AudioTrack;
  readonly data: Buffer;
  readonly time: number;
  readonly duration: number;
}
