import type { WallTime } from './wall-time.ts';

/** A point at which all tracks of a stream begin a segment. */
export interface Cut {
  /** Media sequence number of the segments that begin here. */
  readonly msn: number;
  /** Media time in seconds. */
  readonly time: number;
  /** Seconds of one frame of the track that set the cut: key frames of other tracks may be that far off. */
  readonly slack: number;
  readonly discontinuity: boolean;
  /** The clock jumped: a track reaches the cut when its own clock has jumped, whatever its times say. */
  readonly jump: boolean;
  /** Number of discontinuities up to and including this cut. */
  readonly discontinuities: number;
  readonly wallTime: WallTime;
  /** Seconds added to the times after the cut. */
  readonly shift: number;
}
