import type { VideoTrack } from '../../core/track.ts';
import type { VideoEncoding } from '../encoding.ts';
import { sourceFramerate } from '../picture.ts';

/** Longer than any interval that is asked for: key frames come where they are forced. */
export const LONG_GOP = '9999';

/** A bitrate that is kept within so many seconds, so that a link is not overrun. */
export function constantRate({ bitrate }: VideoEncoding, seconds = 1): string[] {
  return ['-b:v', String(bitrate), '-maxrate', String(bitrate), '-bufsize', String(bitrate * seconds)];
}

/**
 * The encoding for an encoder that shares out its bitrate among as many frames a second as the source has, which is
 * what ffmpeg tells it, whatever the filters leave of them. Others are told the rate that comes out, or read the stamps.
 * @param max frames per second, beyond which it believes nothing
 */
export function countedBySource(encoding: VideoEncoding, from: VideoTrack, max = Infinity): VideoEncoding {
  const { framerate, expectedFramerate, bitrate } = encoding;
  // a filter that adds frames tells the new rate itself
  const told = Math.min(max, Math.max(framerate, sourceFramerate(from, 0)));
  return { ...encoding, bitrate: Math.round((bitrate * told) / expectedFramerate) };
}

/** Options of libraries that take them as one list. */
export function listed(options: ReadonlyArray<readonly [string, string | number]>): string {
  return options.map(([name, value]) => `${name}=${value}`).join(':');
}

/** Options as arguments of their own. */
export function spread(options: ReadonlyArray<readonly [string, string]>): string[] {
  return options.flatMap(([name, value]) => [`-${name}:v`, value]);
}
