/*
 * Durations of segments in playlists. A sum of them must not fall short of the media: hls.js 1.7 calculates times of earlier segments from
 * the durations of those in between, and where the first key frame of a stream comes to lie a microsecond before 0, Media Source Extensions
 * drop it with all frames that need it.
 */

/** Rounding errors of floating point, in units that are rounded to. */
const EPSILON = 1e-3;
/** Seconds by which a listed duration exceeds the actual one at most. */
const MOST_EXCESS = 0.001;

/** The tag of a segment's duration (RFC 8216 4.3.2.1), rounded up to microseconds. @param seconds actual duration */
export function extinf(seconds: number): string {
  return `#EXTINF:${(Math.ceil(seconds * 1e6 - EPSILON) / 1e6).toFixed(6)},`;
}

/** The tag of the duration of a segment in MPEG-TS. @param seconds as of `WholeMilliseconds` */
export function tsExtinf(seconds: number): string {
  return `#EXTINF:${seconds.toFixed(3)},`;
}

/** Whole seconds that EXT-X-TARGETDURATION needs for a segment, however its duration is listed. @param seconds actual duration */
export function targetOf(seconds: number): number {
  return Math.round(seconds + MOST_EXCESS);
}

/** Rounds durations of successive segments to milliseconds, so that their sum exceeds the actual one by less than a millisecond. */
export class WholeMilliseconds {
  /** By which the sum so far exceeds the actual one, in milliseconds. */
  #excess = 0;

  /** @param seconds actual duration of the next segment @returns whole milliseconds, in seconds */
  next(seconds: number): number {
    const wanted = seconds * 1000 - this.#excess;
    const whole = Math.max(1, Math.ceil(wanted - EPSILON));
    this.#excess = whole - wanted;
    return whole / 1000;
  }
}
