import type { OutputStream } from '../../core/stream.ts';
import type { Segment } from '../../packaging/segment.ts';
import type { Rendition } from './rendition.ts';

/** A source that declares more bits per second is not believed. */
const MAX_BANDWIDTH = 1e9;
/** Targets that the segments which a peak is measured over last together (RFC 8216bis 4.4.6.2, BANDWIDTH). */
const PEAK_TARGETS = { least: 0.5, most: 1.5 };

/** Bits per second, container included; 0 while nothing is known. */
export interface Rates {
  readonly peak: number;
  readonly average: number;
}

/**
 * What a rendition takes of a viewer's line: by the segments of the window, and no less than its encoder was asked
 * for, for a quiet picture may move the next moment.
 */
export function bitrates({ packager: { track, window } }: Rendition, output: OutputStream, targetDuration: number): Rates {
  const declared = track.bitrate > 0 && track.bitrate <= MAX_BANDWIDTH ? Math.round(track.bitrate) : 0;
  const segments = window.listed.filter(({ gap }) => !gap);
  if (segments.length === 0) {
    const measured = output.measured(track.id);
    return { peak: Math.max(declared, measured?.bitrateLatest ?? 0), average: measured?.bitrateAvg || declared };
  }
  const average = rate(segments);
  return { peak: Math.max(declared, average, peak(segments, targetDuration)), average };
}

/** The highest rate of any run of segments that is about as long as a target. */
function peak(segments: readonly Segment[], targetDuration: number): number {
  let highest = 0;
  for (let from = 0; from < segments.length; from++) {
    let seconds = 0;
    for (let to = from; to < segments.length; to++) {
      seconds += (segments[to] as Segment).duration;
      if (seconds > PEAK_TARGETS.most * targetDuration) break;
      if (seconds >= PEAK_TARGETS.least * targetDuration) highest = Math.max(highest, rate(segments.slice(from, to + 1)));
    }
  }
  return highest;
}

function rate(segments: readonly Segment[]): number {
  let bits = 0;
  let seconds = 0;
  for (const segment of segments) {
    bits += segment.bytes * 8;
    seconds += segment.duration;
  }
  return Math.ceil(bits / seconds);
}
