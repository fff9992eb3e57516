import type { OutputStream } from '../../../core/stream.ts';
import type { MediaTrack } from '../../../core/track.ts';

/** A source that declares more bits per second is not believed. */
const MAX_BANDWIDTH = 1e9;
/** Targets that the segments which a peak is measured over last together (RFC 8216bis 4.4.6.2, BANDWIDTH). */
const PEAK_TARGETS = { least: 0.5, most: 1.5 };

/** A segment as far as its rate goes. */
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
 * What a rendition takes of a viewer's line: by the segments of the window, and no less than its encoder was asked
 * for, for a quiet picture may move the next moment.
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

/** The highest rate of any run of segments that is about as long as a target. */
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
