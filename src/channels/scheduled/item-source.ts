import type { Packet } from '../../core/packet.ts';
import type { MediaTrack, DataTrack } from '../../core/track.ts';
import type { UnitQueue } from './unit-queue.ts';

/** A frame or event of an item in the canonical form of its codec. */
export interface ItemUnit {
  readonly track: MediaTrack | DataTrack;
  /** In ticks of the track, on the clock of the item: a file begins at 0, earlier units are negative. */
  readonly dts: number;
  readonly pts: number;
  /** 0 for video. */
  readonly duration: number;
  readonly key: Packet['key'];
  readonly data: Buffer;
  /**
   * Decode and presentation time in milliseconds on the same clock; of an event, `at` is its arrival: it may take
   * effect much later.
   */
  readonly at: number;
  readonly shownAt: number;
}

/** Duration of a unit in milliseconds; 0 for video. */
export function unitLength({ duration, track: { timebase } }: ItemUnit): number {
  return (duration * 1000 * timebase.num) / timebase.den;
}

/** Item that is being read. It reads ahead, within limits, and never waits for its consumer. */
export interface ItemSource {
  readonly queue: UnitQueue;
  /**
   * `opening`: not playable yet. `playing`: all present tracks are in the queue, or will not come soon. `ended`:
   * nothing more is queued.
   */
  readonly state: 'opening' | 'playing' | 'ended';
  /** Reason of a failed end; undefined for a regular one. */
  readonly failure: string | undefined;
  /** Whether the item happens now, so it can be joined only at its present position. */
  readonly isLive: boolean;
  /** To be called after units were taken from the queue. */
  taken(): void;
  close(): void;
}

/** Tracks that a channel takes from an item. */
export interface TrackWishes {
  readonly video: boolean;
  /** Audio tracks in order; further ones of an item are dropped. */
  readonly audio: readonly { readonly name: string; readonly language?: string; readonly characteristics?: string }[];
}

export const VIDEO_ID = 0;
export const FIRST_AUDIO_ID = 100;
export const FIRST_DATA_ID = 200;
