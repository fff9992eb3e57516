import { CLOCK } from './stream-types.ts';

/** Times of PES headers and of the clock wrap there. */
const RANGE = 2 ** CLOCK.bits;

/** A time without end, which may be negative, as it is told. */
export function wrapped(time: number): number {
  return ((time % RANGE) + RANGE) % RANGE;
}

/** Ticks from a time that was told to a later one. */
export function ticksAhead(from: number, to: number): number {
  return wrapped(to - from);
}

/** The same where the other one may be earlier: the shorter way. */
export function ticksBetween(from: number, to: number): number {
  const ahead = ticksAhead(from, to);
  return ahead > RANGE / 2 ? ahead - RANGE : ahead;
}
