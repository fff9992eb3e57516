import { CLOCK } from './stream-types.ts';

/** Times of PES headers and of the clock wrap at this value. */
const RANGE = 2 ** CLOCK.bits;

/** Wraps a time, which may be negative. */
export function wrapped(time: number): number {
  return ((time % RANGE) + RANGE) % RANGE;
}

/** Ticks from a wrapped time to a later one. */
export function ticksAhead(from: number, to: number): number {
  return wrapped(to - from);
}

/** Ticks from a wrapped time to another, by the shorter way: negative if that is earlier. */
export function ticksBetween(from: number, to: number): number {
  const ahead = ticksAhead(from, to);
  return ahead > RANGE / 2 ? ahead - RANGE : ahead;
}
