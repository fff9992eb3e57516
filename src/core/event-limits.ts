import { TokenBucket } from '../lib/token-bucket.ts';

/** Largest event that is taken: what a PES packet holds, and what every other way takes. */
export const MAX_EVENT_BYTES = 64_000;
const EVENTS_PER_SECOND = 100;

/** Bounds the events that one source adds to a stream: so many a second, and as many at once. */
export function eventRate(): TokenBucket {
  return new TokenBucket(EVENTS_PER_SECOND, 1000 / EVENTS_PER_SECOND);
}
