import type { Packet } from '../../core/packet.ts';
import type { MediaTrack, DataTrack } from '../../core/track.ts';
import type { UnitQueue } from './unit-queue.ts';

/** A frame or event of an item in the canonical form of its codec. */
export interface ItemUnit {
  readonly track: MediaTrack | DataTrack;
  /** In ticks of the track, on the clock of the item: a file begins with 0, what precedes that is negative. */
  readonly dts: number;
  readonly pts: number;
  /** 0 for video. */
  readonly duration: number;
  readonly key: Packet['key'];
  readonly data: Buffer;
  /** Milliseconds of decoding and of presentation on the same clock; of an event, when it comes: it may take effect much later. */
  readonly at: number;
  readonly shownAt: number;
}

/** How long a unit lasts, in milliseconds; 0 for video. */
export function unitLength({ duration, track: { timebase } }: ItemUnit): number {
  return (duration * 1000 * timebase.num) / timebase.den;
}

/** An item that is being read. It reads ahead, within limits, and never waits for who plays it. */
export interface ItemSource {
  readonly queue: UnitQueue;
  /**
   * `opening`: nothing can be played yet. `playing`: all tracks that it has are in the queue, or will not come soon.
   * `ended`: nothing more gets into the queue.
   */
  readonly state: 'opening' | 'playing' | 'ended';
  /** Why it ended; undefined when it came to its end. */
  readonly failure: string | undefined;
  /** What is played is happening now: it can be joined only where it is. */
  readonly isLive: boolean;
  /** Units were taken from the queue. */
  taken(): void;
  /** Idempotent. */
  close(): void;
}

/** How the tracks of a channel are made of an item's. */
export interface TrackWishes {
  readonly video: boolean;
  /** Tracks of audio, in order; further ones of an item are left out. */
  readonly audio: readonly { readonly name: string; readonly language?: string; readonly characteristics?: string }[];
}

export const VIDEO_ID = 0;
export const FIRST_AUDIO_ID = 100;
export const FIRST_DATA_ID = 200;
