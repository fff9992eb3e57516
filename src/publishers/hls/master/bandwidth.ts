import type { OutputStream } from '../../../core/output-stream.ts';
import type { MediaTrack } from '../../../core/track.ts';

/** Bits per second above which a declared rate is ignored. */
const MAX_BANDWIDTH = 1e9;
/** Target durations over which a peak is measured (RFC 8216bis 4.4.6.2, BANDWIDTH). */
const PEAK_TARGETS = { least: 0.5, most: 1.5 };

export interface Weighed {
  readonly bytes: number;
  /** Seconds. */
  readonly duration: number;
  readonly gap: boolean;
}

/** Bits per second, container included; 0 while nothing is known. */
export interface Rates {
  readonly peak: number;
  readonly average: number;
}

/**
 * Bit rates of a rendition by the segments of the window. The peak is no less than the rate declared by its encoder: a calm video
 * may begin to move at any time.
 */
export function bitrates(
  tracks: readonly MediaTrack[],
  listed: readonly Weighed[],
  output: OutputStream,
  targetDuration: number,
): Rates {
  const sum = (of: (track: MediaTrack) => number | undefined): number =>
    tracks.reduce((all, track) => all + (of(track) ?? 0), 0);
  const declared = sum(({ bitrate }) => (bitrate > 0 && bitrate <= MAX_BANDWIDTH ? Math.round(bitrate) : 0));
  const segments = listed.filter(({ gap }) => !gap);
  if (segments.length === 0) {
    const latest = sum(({ id }) => output.measured(id)?.bitrateLatest);
    return { peak: Math.max(declared, latest), average: sum(({ id }) => output.measured(id)?.bitrateAvg) || declared };
  }
  const average = rate(segments);
  return { peak: Math.max(declared, average, peak(segments, targetDuration)), average };
}

/** Highest rate of successive segments of about a target duration. */
function peak(segments: readonly Weighed[], targetDuration: number): number {
  let highest = 0;
  for (let from = 0; from < segments.length; from++) {
    let seconds = 0;
    for (let to = from; to < segments.length; to++) {
      seconds += (segments[to] as Weighed).duration;
      if (seconds > PEAK_TARGETS.most * targetDuration) break;
      if (seconds >= PEAK_TARGETS.least * targetDuration)
        highest = Math.max(highest, rate(segments.slice(from, to + 1)));
    }
  }
  return highest;
}

function rate(segments: readonly Weighed[]): number {
  let bits = 0;
  let seconds = 0;
  for (const segment of segments) {
    bits += segment.bytes * 8;
    seconds += segment.duration;
  }
  return Math.ceil(bits / seconds);
}
