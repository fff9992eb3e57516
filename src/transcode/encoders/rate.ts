import type { VideoTrack } from '../../core/track.ts';
import type { VideoEncoding } from '../encoding.ts';
import { sourceFramerate } from '../frame-parameters.ts';

/** GOP in frames, longer than any configured interval: key frames are forced instead. */
export const LONG_GOP = '9999';

/** Options of a constant bitrate. @param seconds length of the buffer, in which the bitrate is kept */
export function constantRate({ bitrate }: VideoEncoding, seconds = 1): string[] {
  return ['-b:v', String(bitrate), '-maxrate', String(bitrate), '-bufsize', String(bitrate * seconds)];
}

/**
 * Corrects the bitrate for an encoder that divides it by the source's frame rate, which is the rate that ffmpeg passes
 * on even if filters drop frames. Other encoders get the rate of the output, or use timestamps.
 * @param max highest frame rate, per second, that the encoder accepts
 */
export function countedBySource(encoding: VideoEncoding, from: VideoTrack, max = Infinity): VideoEncoding {
  const { framerate, expectedFramerate, bitrate } = encoding;
  // a filter that adds frames passes on the new rate itself
  const counted = Math.min(max, Math.max(framerate, sourceFramerate(from, 0)));
  return { ...encoding, bitrate: Math.round((bitrate * counted) / expectedFramerate) };
}

/** Formats options for libraries that take them as one list. */
export function listed(options: ReadonlyArray<readonly [string, string | number]>): string {
  return options.map(([name, value]) => `${name}=${value}`).join(':');
}

/** Formats options as separate arguments. */
export function spread(options: ReadonlyArray<readonly [string, string]>): string[] {
  return options.flatMap(([name, value]) => [`-${name}:v`, value]);
}
