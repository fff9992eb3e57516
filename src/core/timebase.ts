/** Length of one tick: `num / den` seconds. */
export interface Timebase {
  readonly num: number;
  readonly den: number;
}

/** Canonical timebase of every video track: 90 kHz, as RTP and MPEG-TS count. */
export const VIDEO_TIMEBASE: Timebase = Object.freeze({ num: 1, den: 90_000 });

/** RTMP, FLV and the wall clock count in milliseconds. */
export const MILLISECONDS: Timebase = Object.freeze({ num: 1, den: 1000 });

/**
 * Converts a time between timebases, to the nearest tick.
 * Exact for every |value| below 2^53: the product is never formed whole.
 */
export function rescale(value: number, from: Timebase, to: Timebase): number {
  const multiply = from.num * to.den;
  const divide = from.den * to.num;
  if (multiply === divide) return value;
  const whole = Math.floor(value / divide);
  return whole * multiply + Math.round(((value - whole * divide) * multiply) / divide);
}

/** Time in seconds, as a float: for meters and limits, never for timestamps on the wire. */
export function toSeconds(value: number, timebase: Timebase): number {
  return (value * timebase.num) / timebase.den;
}
