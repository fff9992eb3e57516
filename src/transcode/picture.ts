import { shownSize, type VideoTrack } from '../core/track.ts';

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Of two rates within this part of each other, one is the other with a rounded clock. */
const SAME_RATE = 0.01;
/** Frames per second taken for a source of which nobody knows. */
const USUAL_FRAMERATE = 30;
const MIN_FRAMERATE = 5;

/**
 * Size of an encoded picture, by docs/compatibility.md#transcoding: of the source where none is configured (0), with its aspect
 * where one side is, and aligned up to a multiple of 4. Undefined as long as it takes a source's size that is not known.
 */
export function pictureSize(configured: Size, source: Size): Size | undefined {
  const { width, height } = configured;
  if (width > 0 && height > 0) return { width: align(width), height: align(height) };
  if (source.width <= 0 || source.height <= 0) return undefined;
  if (width > 0) return { width: align(width), height: align(even((width * source.height) / source.width)) };
  if (height > 0) return { width: align(even((height * source.width) / source.height)), height: align(height) };
  return { width: align(source.width), height: align(source.height) };
}

/** The size of a source in square pixels, for what has no other. */
export function squareSize(source: VideoTrack): Size {
  const { width, height } = shownSize(source);
  return { width: Math.round(width), height };
}

/** Whether a rate of frames means a source's own; false where the source's is not known (0). */
export function isSameRate(framerate: number, source: number): boolean {
  return Math.abs(framerate - source) <= source * SAME_RATE && source > 0;
}

/**
 * Frames per second of a source: what it declared, else what was measured, floored and raised until it divides the
 * clock of 90 kHz (docs/compatibility.md#transcoding), else the usual.
 * @param measured 0 where nothing is
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
