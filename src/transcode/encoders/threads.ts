import { availableParallelism } from 'node:os';
import type { VideoEncoding } from '../encoding.ts';

const PIXELS_PER_THREAD = 1280 * 720;

/**
 * Threads of one encoder: as configured, else one per 720p of pixels. More cost more than they gain: for a low delay,
 * threads share one frame instead of encoding several, and renditions run in parallel anyway.
 */
export function encoderThreads({ threads, width, height }: VideoEncoding): number {
  if (threads > 0) return threads;
  return Math.min(availableParallelism(), Math.max(1, Math.ceil((width * height) / PIXELS_PER_THREAD)));
}
