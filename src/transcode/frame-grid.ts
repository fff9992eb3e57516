import type { VideoTrack } from '../core/track.ts';
import type { ImageEncoding, VideoEncoding } from './encoding.ts';
import { isSameRate } from './frame-parameters.ts';

/**
 * Added to every time before ffmpeg and subtracted after it: the first packets of an audio encoder have times before the
 * first sample, and NUT has no negative times.
 */
export const OFFSET_SECONDS = 1;

/** Frames per second of a source with unknown rate, for the tolerance against jitter only. */
const FASTEST_USUAL = 60;

/*
 * All outputs of a source count time from its first decoded frame (ffmpeg's expressions for key frames know no other
 * clock), and with the same tolerance. A point in time thus falls on the same source frame in each, which keeps key
 * frames aligned at any frame rate. The first frame must therefore reach every encoder.
 */

/** Seconds of half a frame: timestamps rounded to milliseconds are off by less. */
function toleranceOf(rate: number): number {
  return 0.5 / (rate || FASTEST_USUAL);
}

/** Filters that select the frames of an output, in order; none if every frame passes. */
export function frameFilters(from: VideoTrack, { framerate, skipFrames }: VideoEncoding | ImageEncoding): string[] {
  if (skipFrames !== undefined) return skipFrames === 0 ? [] : [`select='not(mod(n,${skipFrames + 1}))'`];
  if (framerate === 0 || isSameRate(framerate, from.framerate)) return [];
  if (from.framerate > 0 && framerate > from.framerate) return [`fps=${decimal(framerate)}`];
  return [decimation(from.framerate, framerate)];
}

/**
 * Passes the first frame of every cell of a grid at the output's frame rate. Register 0 is the next cell due. It lags if
 * the source is not faster than the grid, so that no frame is lost; a gap or a step back resets it.
 */
function decimation(source: number, framerate: number): string {
  const cell = `floor((t-start_t+${decimal(toleranceOf(source))})*${decimal(framerate)})`;
  const isDue = 'gte(ld(1),ld(0))+lt(ld(1),ld(0)-2)';
  const next = 'if(between(ld(1)-ld(0),0,1),ld(0)+1,ld(1)+1)';
  return `select='st(1,${cell});if(${isDue},st(0,${next});1,0)'`;
}

/** Filter that drops media before a time on the input's clock; none if that is undefined. */
export function leaveOut(filter: 'trim' | 'atrim', seconds: number | undefined): string[] {
  return seconds === undefined ? [] : [`${filter}=start=${(seconds + OFFSET_SECONDS).toFixed(6)}`];
}

/** Filter as of `leaveOut` that keeps the first frame, from which time is counted; the output's reader drops it. */
export function resumeFilter(seconds: number | undefined): string[] {
  return seconds === undefined ? [] : [`select='not(n)+gte(t,${decimal(seconds + OFFSET_SECONDS)})'`];
}

/**
 * Value of ffmpeg's option `force_key_frames` for an encoding.
 * @param resumed whether the encoding continues another: then its second frame is the first that counts
 */
export function forcedKeyFrames(from: VideoTrack, encoding: VideoEncoding, resumed: boolean): string {
  const { keyFrames, expectedFramerate } = encoding;
  if (keyFrames === 'source') return 'source';
  const source = toleranceOf(from.framerate);
  // frames inserted between those of the source are closer together
  const tolerance = expectedFramerate > from.framerate ? Math.min(source, toleranceOf(expectedFramerate)) : source;
  const interval = (time: string) => `floor((${time}+${decimal(tolerance)})/${decimal(keyFrames)})`;
  return `expr:if(lte(n,${resumed ? 1 : 0}),1,gt(${interval('t')},${interval('prev_forced_t')}))`;
}

/** A number for ffmpeg's expressions and options: never with an exponent. */
function decimal(value: number): string {
  return value.toFixed(9).replace(/\.?0+$/, '');
}
