import { shownSize, type VideoTrack } from '../core/track.ts';

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Share by which frame rates may differ because of a rounded clock. */
const SAME_RATE = 0.01;
/** Frames per second assumed for a source with unknown rate. */
const USUAL_FRAMERATE = 30;
const MIN_FRAMERATE = 5;

/**
 * Size of encoded frames (docs/compatibility.md#transcoding): the source's if none is configured (0), with its aspect ratio if
 * one side is configured; aligned up to a multiple of 4. Undefined while the size of the source is needed and unknown.
 */
export function frameSize(configured: Size, source: Size): Size | undefined {
  const { width, height } = configured;
  if (width > 0 && height > 0) return { width: align(width), height: align(height) };
  if (source.width <= 0 || source.height <= 0) return undefined;
  if (width > 0) return { width: align(width), height: align(even((width * source.height) / source.width)) };
  if (height > 0) return { width: align(even((height * source.width) / source.height)), height: align(height) };
  return { width: align(source.width), height: align(source.height) };
}

/** Size of a source in square pixels, for codecs without a sample aspect ratio. */
export function squareSize(source: VideoTrack): Size {
  const { width, height } = shownSize(source);
  return { width: Math.round(width), height };
}

/** Whether a frame rate is the source's own; false while the source's is unknown (0). */
export function isSameRate(framerate: number, source: number): boolean {
  return Math.abs(framerate - source) <= source * SAME_RATE && source > 0;
}

/**
 * Frames per second of a source: the declared rate; else the measured one, rounded down and raised until it divides the
 * track's clock (docs/compatibility.md#transcoding); else the usual one.
 * @param measured 0 if unknown
 */
export function sourceFramerate({ framerate, timebase }: VideoTrack, measured: number): number {
  if (framerate > 0) return framerate;
  if (measured <= 0) return USUAL_FRAMERATE;
  const ticks = timebase.den / timebase.num;
  let rate = Math.max(MIN_FRAMERATE, Math.floor(measured));
  while (rate < ticks && ticks % rate !== 0) rate++;
  return rate;
}

function even(pixels: number): number {
  return Math.max(2, Math.round(pixels / 2) * 2);
}

function align(pixels: number): number {
  return Math.ceil(pixels / 4) * 4;
}
