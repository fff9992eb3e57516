import { HOLD_MS } from '../../../access/starting.ts';
import { MAX_SEGMENT_SECONDS } from '../../../packaging/segmenter.ts';

/** Targets after which a request that waits is given up, and a silent player counts as gone. */
const TARGETS = 3;
const MAX_MS = 60_000;
/**
 * The same for a publisher that has gone. A player that hears nothing for longer than its playlist lasts believes that it
 * has missed everything in between; one that is told some times that nothing is new waits (hls.js, `expired`).
 */
const INTERRUPTED_TARGETS = 1;
const MAX_INTERRUPTED_MS = 5000;

/** What a request is held for. */
export interface Wait {
  /** When the request came, in milliseconds since the epoch: on its way from another node it has waited already. */
  readonly since: number;
  /** What comes next; a first complete segment, without which many players do not begin; or that there is anything to play. */
  readonly what: 'next' | 'first' | 'start';
}

/** Milliseconds after which a player that is silent has gone. @param targetDuration seconds */
export function silenceMs(targetDuration: number): number {
  return TARGETS * targetDuration * 1000;
}

/**
 * Milliseconds that a request is held. Where a first segment ends, a key frame decides, that may be further away than
 * the target foresees: nothing was measured yet.
 * @param interrupted the publisher has gone, and may return
 */
export function waitMs(targetDuration: number, interrupted: boolean, what: Wait['what'] = 'next'): number {
  if (interrupted) return Math.min(INTERRUPTED_TARGETS * targetDuration * 1000, MAX_INTERRUPTED_MS);
  if (what === 'start') return HOLD_MS;
  const longest = what === 'first' ? (MAX_SEGMENT_SECONDS + targetDuration) * 1000 : 0;
  return Math.min(Math.max(silenceMs(targetDuration), longest), MAX_MS);
}
