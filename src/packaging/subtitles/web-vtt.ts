import type { PlacedCue } from '../../core/cue-store.ts';

/** Time for which the map stays. */
const MAP_MS = 3_600_000;
const CLOCK_PER_MS = 90n;
/** MPEG-2 timestamps have 33 bits. */
const CLOCK_RANGE = 2n ** 33n;

/**
 * Writes a segment of subtitles (RFC 8216, section 3.5): WebVTT whose cue times are those of the media segments. Its map is of the
 * hour: a player takes the nearest of the times that an MPEG-2 timestamp may stand for. It is not of the segment, or hls.js 1.7
 * computes other times for a cue that is repeated, by a rounding error, and shows it twice.
 * @param begin of the segment, in milliseconds of the media timeline
 * @param clockOffset ticks of 90 kHz by which timestamps of MPEG-2 are later than it
 */
export function webVtt(begin: number, cues: readonly PlacedCue[], clockOffset = 0): Buffer {
  const local = Math.max(0, Math.floor(begin / MAP_MS) * MAP_MS);
  const clock = (BigInt(local) * CLOCK_PER_MS + BigInt(clockOffset)) % CLOCK_RANGE;
  let text = `WEBVTT\nX-TIMESTAMP-MAP=LOCAL:${timestamp(local)},MPEGTS:${clock}\n`;
  for (const cue of cues) {
    const { head, text: payload } = writtenCue(cue);
    text += `\n${head}${payload}`;
  }
  return Buffer.from(text);
}

/** Writes a cue (WebVTT, section 4.1). @returns its times, up to the end of the second one, and what follows, without a blank line */
export function writtenCue({ start, end, settings, text }: PlacedCue): {
  readonly head: string;
  readonly text: string;
} {
  return { head: `${timestamp(start)} --> ${timestamp(end)}`, text: `${settings && ` ${settings}`}\n${text}\n` };
}

/** WebVTT timestamp, with as many digits of hours as it takes. @param milliseconds not negative */
export function timestamp(milliseconds: number): string {
  const whole = Math.max(0, Math.round(milliseconds));
  const digits = (value: number, count = 2): string => String(value).padStart(count, '0');
  const seconds = Math.floor(whole / 1000);
  const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map((one) => digits(one));
  return `${clock.join(':')}.${digits(whole % 1000, 3)}`;
}
