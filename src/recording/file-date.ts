import { shownAt, type ArrivalClock } from '../core/arrival-clock.ts';
import type { Packet } from '../core/packet.ts';

/** Share of the file before by which a file may seem to begin earlier or later than that ends. */
const FOLLOW_SHARE = 0.01;
/** Playback takes more for a break. */
const MAX_FOLLOW_MS = 1000;
/** The clock, or media time, has jumped. */
const JUMP_MS = 10_000;

/** A file of the same recording that ends where another one begins. */
export interface FileBefore {
  /** Date of its first frame, in milliseconds since the epoch. */
  readonly startTime: number;
  /** Milliseconds from its first frame to the first frame of the next file. */
  readonly length: number;
}

/**
 * Dates a recorded file by the arrival of its first frame. What is late dates no file: one that follows another one begins where that
 * ends, and comes closer to the clock by a small share of its time only.
 * @param now milliseconds since the epoch
 * @returns milliseconds since the epoch
 */
export function fileDate(
  first: Packet,
  arrival: Pick<ArrivalClock, 'at'>,
  before: FileBefore | undefined,
  now: number,
): number {
  const arrived = Math.round(Math.min(now, arrival.at(shownAt(first))));
  if (before === undefined) return arrived;
  const { startTime, length } = before;
  const expected = startTime + length;
  const late = arrived - expected;
  if (Math.abs(late) > JUMP_MS) return arrived;
  const most = Math.round(Math.min(length * FOLLOW_SHARE, MAX_FOLLOW_MS));
  return expected + Math.max(-most, Math.min(most, late));
}
