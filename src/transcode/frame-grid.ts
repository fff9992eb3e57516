import type { VideoTrack } from '../core/track.ts';
import type { ImageEncoding, VideoEncoding } from './encoding.ts';
import { isSameRate } from './picture.ts';

/**
 * Added to every time on the way into ffmpeg and taken off on the way out: the first packets of an audio encoder are
 * stamped before the first sample, and NUT cannot tell a negative time.
 */
export const OFFSET_SECONDS = 1;

/** Frames per second of a source of which nobody knows, for no more than the tolerance against jitter. */
const FASTEST_USUAL = 60;

/*
 * All outputs of a source count time from its first decoded frame (ffmpeg's expressions for key frames know no other
 * clock), and with the same tolerance. So a point in time falls on the same source frame in each, which keeps key
 * frames aligned whatever the frame rates are. That first frame therefore reaches every encoder.
 */

/** Stamps that were rounded to milliseconds are early or late by less than half a frame. */
function toleranceOf(rate: number): number {
  return 0.5 / (rate || FASTEST_USUAL);
}

/** Filters that choose the frames of an output, in their order; none where every frame passes. */
export function frameFilters(from: VideoTrack, { framerate, skipFrames }: VideoEncoding | ImageEncoding): string[] {
  if (skipFrames !== undefined) return skipFrames === 0 ? [] : [`select='not(mod(n,${skipFrames + 1}))'`];
  if (framerate === 0 || isSameRate(framerate, from.framerate)) return [];
  if (from.framerate > 0 && framerate > from.framerate) return [`fps=${decimal(framerate)}`];
  return [decimation(from.framerate, framerate)];
}

/**
 * Passes the first frame of every cell of a grid of the output's frame rate. Register 0 is the next cell that is due;
 * it lags where the source is not faster than the grid, so that nothing is lost then, and a gap or a step back
 * sets it anew.
 */
function decimation(source: number, framerate: number): string {
  const cell = `floor((t-start_t+${decimal(toleranceOf(source))})*${decimal(framerate)})`;
  const isDue = 'gte(ld(1),ld(0))+lt(ld(1),ld(0)-2)';
  const next = 'if(between(ld(1)-ld(0),0,1),ld(0)+1,ld(1)+1)';
  return `select='st(1,${cell});if(${isDue},st(0,${next});1,0)'`;
}

/** Leaves out what is before a time on the input's clock; nothing, where that is undefined. */
export function leaveOut(filter: 'trim' | 'atrim', seconds: number | undefined): string[] {
  return seconds === undefined ? [] : [`${filter}=start=${(seconds + OFFSET_SECONDS).toFixed(6)}`];
}

/** As `leaveOut`, but for the first frame, from which time is counted: who reads the output drops that. */
export function resumeFilter(seconds: number | undefined): string[] {
  return seconds === undefined ? [] : [`select='not(n)+gte(t,${decimal(seconds + OFFSET_SECONDS)})'`];
}

/**
 * The value of ffmpeg's option `force_key_frames` for an encoding.
 * @param resumed the encoding goes on where another ended: its second frame is the first that counts
 */
export function forcedKeyFrames(from: VideoTrack, encoding: VideoEncoding, resumed: boolean): string {
  const { keyFrames, expectedFramerate } = encoding;
  if (keyFrames === 'source') return 'source';
  const source = toleranceOf(from.framerate);
  // frames that were put between those of the source are nearer to each other
  const tolerance = expectedFramerate > from.framerate ? Math.min(source, toleranceOf(expectedFramerate)) : source;
  const interval = (time: string) => `floor((${time}+${decimal(tolerance)})/${decimal(keyFrames)})`;
  return `expr:if(lte(n,${resumed ? 1 : 0}),1,gt(${interval('t')},${interval('prev_forced_t')}))`;
}

/** A number as ffmpeg's expressions and options read it: never with an exponent. */
function decimal(value: number): string {
  return value.toFixed(9).replace(/\.?0+$/, '');
}
