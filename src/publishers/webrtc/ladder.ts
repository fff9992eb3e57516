import type { OutputStream } from '../../core/output-stream.ts';
import type { MediaTrack } from '../../core/track.ts';

/** Assumed need of a video of which no bitrate is known. */
const BITS_PER_PIXEL = 0.1;
const FRAMERATE = 30;

/** Estimates the bits per second of a track: the higher of the declared and measured rate, or one from the size of its video. */
export function bitrateOf(stream: OutputStream, track: MediaTrack): number {
  const known = Math.max(track.bitrate, stream.measured(track.id)?.bitrateAvg ?? 0);
  if (known > 0 || track.type === 'audio') return known;
  return track.width * track.height * (track.framerate || FRAMERATE) * BITS_PER_PIXEL;
}

/** Sorts from worst to best: by size, as a still video takes few bits in any, then by bitrate. */
export function lowestFirst<T extends MediaTrack>(stream: OutputStream, tracks: readonly T[]): T[] {
  return tracks.toSorted(
    (one, other) => pixels(one) - pixels(other) || bitrateOf(stream, one) - bitrateOf(stream, other),
  );
}

function pixels(track: MediaTrack): number {
  return track.type === 'video' ? track.width * track.height : 0;
}
