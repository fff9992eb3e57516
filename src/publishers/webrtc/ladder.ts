import type { OutputStream } from '../../core/stream.ts';
import type { MediaTrack } from '../../core/track.ts';

/** What a video is taken to need as long as nothing is known of it. */
const BITS_PER_PIXEL = 0.1;
const FRAMERATE = 30;

/** Bits per second of a track: what it declares or what is measured, whichever is more, or what its picture lets expect. */
export function bitrateOf(stream: OutputStream, track: MediaTrack): number {
  const known = Math.max(track.bitrate, stream.measured(track.id)?.bitrateAvg ?? 0);
  if (known > 0 || track.type === 'audio') return known;
  return track.width * track.height * (track.framerate || FRAMERATE) * BITS_PER_PIXEL;
}

/** From the worst to the best: by size, for a still picture takes few bits in any, then by bitrate. */
export function lowestFirst<T extends MediaTrack>(stream: OutputStream, tracks: readonly T[]): T[] {
  return tracks.toSorted(
    (one, other) => pixels(one) - pixels(other) || bitrateOf(stream, one) - bitrateOf(stream, other),
  );
}

function pixels(track: MediaTrack): number {
  return track.type === 'video' ? track.width * track.height : 0;
}
