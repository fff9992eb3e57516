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

/** Cause of a break of the timeline: a jump of the clock, or another configuration. */
export type BreakCause = 'jump' | 'change';

/** A frame of the track that sets a cut. */
type CutFrame = Pick<Cut, 'time' | 'slack' | 'wallTime'>;

/**
 * Makes the first cut of a timeline.
 * @param discontinuities up to and including this cut
 * @param range as of `PartForm.range`
 */
export function firstCut(at: CutFrame, msn: number, discontinuities: number, range: number): Cut {
  return { ...at, msn, discontinuity: false, jump: false, discontinuities, shift: shiftFor(at.time, range) };
}

/** Makes the cut after another one. @param range as of `PartForm.range` */
export function cutAfter(before: Cut, at: CutFrame, cause: BreakCause | undefined, range: number): Cut {
  const isOver = at.time + before.shift >= range;
  const jump = cause === 'jump';
  const discontinuity = cause !== undefined || isOver;
  return {
    ...at,
    msn: before.msn + 1,
    discontinuity,
    jump,
    discontinuities: before.discontinuities + (discontinuity ? 1 : 0),
    shift: jump || isOver ? shiftFor(at.time, range) : before.shift,
  };
}

/** Whole seconds that move a time into a range from 0: decode times in MP4 are unsigned. */
function shiftFor(time: number, range: number): number {
  if (time < 0) return Math.ceil(-time);
  return time < range ? 0 : -Math.floor(time / range) * range;
}
