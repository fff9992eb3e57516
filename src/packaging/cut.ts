import type { WallTime } from './wall-time.ts';

/** Where all tracks of a stream begin a segment. */
export interface Cut {
  /** Media sequence number of the segments that it begins. */
  readonly msn: number;
  /** Media time in seconds. */
  readonly time: number;
  /** Seconds that a frame of the track lasts at whose frame it is: so far off are the key frames of others. */
  readonly slack: number;
  readonly discontinuity: boolean;
  /** The clock jumped: a track is there when it has jumped too, whatever its times say. */
  readonly jump: boolean;
  /** Discontinuities of the stream so far, this one included. */
  readonly discontinuities: number;
  readonly wallTime: WallTime;
  /** Seconds that are added to the times of what follows. */
  readonly shift: number;
}
