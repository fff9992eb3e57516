import { pause } from '../../lib/pause.ts';
import { PullError } from '../pull/error.ts';
import type { MediaPlaylist, Segment } from './playlist.ts';

/** Target durations before the end of a live playlist at which a player begins (RFC 8216 section 6.3.3). */
export const START_TARGETS = 3;
/** Attempts to reload a playlist, one after the other. */
const TRIES = 4;
/** Least time between two loads of a playlist, in milliseconds. */
const MIN_RELOAD_MS = 200;
/** Loads in a row that are older than what was there before: caches may lag, but not for long. */
const MAX_OLD_LOADS = 3;

export interface FollowedSegment extends Segment {
  /** Segments before it that are missing: they have left the playlist. */
  readonly missing: number;
  /** How often the packager has begun to count anew up to here, times included. */
  readonly restarts: number;
}

export interface FollowOptions {
  /** Reads the playlist again. */
  readonly load: () => Promise<MediaPlaylist>;
  readonly signal: AbortSignal;
  /** Sequence number to begin with. */
  readonly from: number;
}

/**
 * The segments of a playlist from a number on, each once, in their order. Their discontinuities are counted on where a playlist of
 * which they have left forgets to. Ends when the signal aborts.
 * @throws PullError when it cannot be loaded any more
 */
export async function* follow(
  begin: MediaPlaylist,
  { load, signal, from }: FollowOptions,
): AsyncGenerator<FollowedSegment, void, undefined> {
  let playlist = begin;
  let loadedAt = performance.now();
  let next = from;
  let restarts = 0;
  let latest: Segment | undefined;
  let forgotten = 0;
  let last = playlist.segments.at(-1)?.sequence ?? -1;
  let old = 0;
  for (;;) {
    for (const segment of playlist.segments) {
      if (segment.sequence < next) continue;
      const discontinuity = segment.discontinuity + forgotten;
      latest = { ...segment, discontinuity };
      yield { ...latest, missing: segment.sequence - next, restarts };
      if (signal.aborted) return;
      next = segment.sequence + 1;
    }
    if (playlist.isEnded) return;
    const newest = playlist.segments.at(-1)?.sequence ?? -1;
    // RFC 8216 section 6.3.4: sooner where nothing was new
    const waitMs = (playlist.target * 1000) / (newest > last ? 1 : 2);
    last = newest;
    await pause(Math.max(MIN_RELOAD_MS, loadedAt + waitMs - performance.now()), signal);
    if (signal.aborted) return;
    const before = playlist.segments[0]?.sequence ?? next;
    playlist = await reload(load, playlist.target, signal);
    loadedAt = performance.now();
    const end = endOf(playlist) ?? next;
    old = end < next ? old + 1 : 0;
    forgotten = forgottenBy(playlist, latest) ?? forgotten;
    // a packager that was started anew counts from its own beginning
    if (old === 0 || (end > before && old < MAX_OLD_LOADS)) continue;
    [next, last, latest, forgotten, old] = [startOf(playlist), -1, undefined, 0, 0];
    restarts++;
  }
}

/** Sequence number at which to begin. */
export function startOf({ segments, target, isEnded }: MediaPlaylist, after?: Segment): number {
  if (after !== undefined && segments.some((segment) => isSame(segment, after))) return after.sequence + 1;
  if (isEnded) return segments[0]?.sequence ?? 0;
  let seconds = 0;
  for (const { sequence, duration } of segments.toReversed()) {
    seconds += duration;
    if (seconds >= START_TARGETS * target) return sequence;
  }
  return segments[0]?.sequence ?? 0;
}

/** Sequence number behind the last segment; undefined for a playlist without any. */
export function endOf({ segments }: MediaPlaylist): number | undefined {
  const last = segments.at(-1)?.sequence;
  return last === undefined ? undefined : last + 1;
}

/** Discontinuities that a playlist does not count any more; undefined where it lacks the latest segment. */
function forgottenBy({ segments }: MediaPlaylist, latest: Segment | undefined): number | undefined {
  const same = latest && segments.find(({ sequence }) => sequence === latest.sequence);
  return same && latest.discontinuity - same.discontinuity;
}

/** Queries may hold what differs for each viewer. */
function isSame(one: Segment, other: Segment): boolean {
  return one.sequence === other.sequence && one.uri.pathname === other.uri.pathname;
}

async function reload(load: () => Promise<MediaPlaylist>, target: number, signal: AbortSignal): Promise<MediaPlaylist> {
  for (let failures = 0; ;) {
    try {
      return await load();
    } catch (error) {
      if (!(error instanceof PullError) || ++failures === TRIES || signal.aborted) throw error;
      await pause((target * 1000) / 2, signal);
    }
  }
}
