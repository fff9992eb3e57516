import { endOf, startOf } from './follower.ts';
import type { MediaPlaylist, Segment } from './playlist.ts';

/** By how much sums of durations may differ, in seconds. */
const TOLERANCE = 0.001;

/**
 * Sequence number at which to begin in a playlist, so that its media is there where that of another playlist of the stream begins: by
 * the dates of both; else by their beginnings if they have ended, or their ends, since these are about the same time. It begins a
 * little too early rather than too late, and in the same discontinuity where it has that.
 * @param from sequence number at which the other one begins
 */
export function matching(playlist: MediaPlaylist, other: MediaPlaylist, from: number): number {
  const target = other.segments.find(({ sequence }) => sequence >= from);
  if (target === undefined) return startOf(playlist);
  const same = playlist.segments.filter(({ discontinuity }) => discontinuity === target.discontinuity);
  const segments = same.length === 0 ? playlist.segments : same;
  const match = byDate(segments, target) ?? byPlace(playlist, other, from);
  const number = match ?? segments[0]?.sequence ?? endOf(playlist) ?? 0;
  const [first = number, last = number] = [segments[0]?.sequence, segments.at(-1)?.sequence];
  return Math.min(Math.max(number, first), last);
}

function byDate(segments: readonly Segment[], { date }: Segment): number | undefined {
  if (date === undefined || segments.some((segment) => segment.date === undefined)) return undefined;
  return segments.findLast((segment) => (segment.date ?? Infinity) <= date)?.sequence ?? segments[0]?.sequence;
}

function byPlace(playlist: MediaPlaylist, other: MediaPlaylist, from: number): number | undefined {
  if (playlist.isEnded && other.isEnded) {
    const before = secondsOf(other.segments.filter(({ sequence }) => sequence < from));
    return passing(playlist.segments, before) ?? playlist.segments.at(-1)?.sequence;
  }
  // the two were loaded one after the other
  const behind = secondsOf(other.segments.filter(({ sequence }) => sequence >= from)) + playlist.target;
  return passing(playlist.segments.toReversed(), behind - TOLERANCE) ?? playlist.segments[0]?.sequence;
}

/** The first segment that ends behind some seconds of all. */
function passing(segments: readonly Segment[], seconds: number): number | undefined {
  let sum = 0;
  return segments.find(({ duration }) => (sum += duration) > seconds)?.sequence;
}

function secondsOf(segments: readonly Segment[]): number {
  return segments.reduce((sum, { duration }) => sum + duration, 0);
}
