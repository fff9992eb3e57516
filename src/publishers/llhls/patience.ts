/** Targets after which a request that waits is given up, and a silent player counts as gone. */
const TARGETS = 3;
const MAX_MS = 60_000;
/**
 * The same for a publisher that has gone. A player that hears nothing for longer than its playlist lasts believes that it
 * has missed everything in between; one that is told some times that nothing is new waits (hls.js, `expired`).
 */
const INTERRUPTED_TARGETS = 1;
const MAX_INTERRUPTED_MS = 5000;

/** Milliseconds after which a player that is silent has gone. @param targetDuration seconds */
export function silenceMs(targetDuration: number): number {
  return TARGETS * targetDuration * 1000;
}

/** Milliseconds that a request is held for what comes next. @param interrupted the publisher has gone, and may return */
export function patienceMs(targetDuration: number, interrupted: boolean): number {
  if (interrupted) return Math.min(INTERRUPTED_TARGETS * targetDuration * 1000, MAX_INTERRUPTED_MS);
  return Math.min(silenceMs(targetDuration), MAX_MS);
}
