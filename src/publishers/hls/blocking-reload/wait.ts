import { HOLD_MS } from '../../../access/starting.ts';
import { MAX_SEGMENT_SECONDS } from '../../../packaging/segmenter.ts';

/** Target durations after which a waiting request ends, and a silent player counts as gone. */
const TARGETS = 3;
const MAX_MS = 60_000;
/**
 * Target durations for a request whose publisher has left. A player without an answer for longer than its playlist lasts believes
 * that it missed everything since; one that gets the same playlist a few times waits (hls.js, `expired`).
 */
const INTERRUPTED_TARGETS = 1;
const MAX_INTERRUPTED_MS = 5000;
/**
 * hls.js 1.7 gives up an answer that has not begun after 10 s, tries again at once, and ends playback with the third request for a
 * media playlist that fails before one of the video was answered (findings/hlsjs-three-playlists-time-out.sh). So the request of the
 * video ends first while no media comes, early enough for the player to have loaded it anew, a second later, before the other
 * renditions fail.
 */
const VIDEO_MS = 6000;
const AFTER_VIDEO_MS = 3000;

export interface Wait {
  /** Arrival of the request, in milliseconds since the epoch: it may have waited at another node before. */
  readonly since: number;
  /**
   * The next part or segment; the very next part of a video, which is overdue soon; a first complete segment, which many players
   * need to start; or anything to play.
   */
  readonly what: 'next' | 'soon' | 'first' | 'start';
}

/** Milliseconds after which a silent player counts as gone. @param targetDuration seconds */
export function silenceMs(targetDuration: number): number {
  return TARGETS * targetDuration * 1000;
}

/**
 * Milliseconds that a request is held. A first segment ends at a key frame, which may come later than the target duration, since
 * nothing was measured yet.
 * @param interrupted the publisher has left, and may return
 */
export function waitMs(targetDuration: number, interrupted: boolean, what: Wait['what'] = 'next'): number {
  if (interrupted) return Math.min(INTERRUPTED_TARGETS * targetDuration * 1000, MAX_INTERRUPTED_MS);
  if (what === 'start') return HOLD_MS;
  const soon = Math.min(silenceMs(targetDuration), VIDEO_MS);
  if (what === 'soon') return soon;
  const longest = what === 'first' ? (MAX_SEGMENT_SECONDS + targetDuration) * 1000 : soon + AFTER_VIDEO_MS;
  return Math.min(Math.max(silenceMs(targetDuration), longest), MAX_MS);
}
