import { availableParallelism } from 'node:os';
import type { VideoEncoding } from '../encoding.ts';

const PIXELS_PER_THREAD = 1280 * 720;

/**
 * Threads of one encoder: as configured, else one for each 720p of picture. More cost more than they gain, since what
 * keeps the delay low is to split a picture, not to work on several; renditions run side by side anyway.
 */
export function encoderThreads({ threads, width, height }: VideoEncoding): number {
  if (threads > 0) return threads;
  return Math.min(availableParallelism(), Math.max(1, Math.ceil((width * height) / PIXELS_PER_THREAD)));
}
