import { initSegment } from '../containers/fmp4/init.ts';
import { UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import type { MediaTrack } from '../core/track.ts';
import { codecString } from './codec-string.ts';
import type { Init } from './segment.ts';

/** A rate that an AudioSpecificConfig can spell out. */
const MAX_TIMESCALE = 2 ** 24;

/** @throws UnsupportedTrackError, BitstreamError when the track's configuration cannot be used */
export function describe(track: MediaTrack, version: number): Init {
  const { den } = track.timebase;
  if (!(den > 0 && den <= MAX_TIMESCALE)) throw new UnsupportedTrackError(`a timebase of 1/${den} s does not fit`);
  return { version, track, codec: codecString(track), data: initSegment(track) };
}

/** Whether decoders must be set up anew. */
export function needsReset(one: MediaTrack, other: MediaTrack): boolean {
  if (one.codec !== other.codec || one.timebase.den !== other.timebase.den) return true;
  if (one.config === undefined || other.config === undefined) return one.config !== other.config;
  return !one.config.equals(other.config);
}
