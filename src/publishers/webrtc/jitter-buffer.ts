import type { Schedule } from '../../core/delayed-stream.ts';
import { toSeconds } from '../../core/timebase.ts';

/** Limits of the hold (docs/compatibility.md#configuration). */
const MIN_MS = 20;
const MAX_MS = 500;
/** Time for which the earliest and the latest arrival are remembered, at least; twice that at most. */
const WINDOW_MS = 5000;
/** A change of the difference between arrival and media time beyond this is a jump of the source. */
const JUMP_MS = 2000;
/** Decrease of the hold with each frame, when a shorter one is enough: small enough to be invisible. */
const STEP_MS = 0.5;

/**
 * Schedules frames that arrived unsteadily, so that viewers get them as evenly as they were captured: at the time of the frame,
 * plus the least recent difference between arrival and frame time, plus the hold, which is the range of these differences. The
 * hold grows at once and shrinks slowly. Events leave with the media that arrived before them.
 */
export function jitterBuffer(): Schedule {
  let windowEnd = -Infinity;
  let [now, before] = [none(), none()];
  let hold = MIN_MS;
  return ({ dts, track: { type, timebase } }, at) => {
    if (type === 'data') return at;
    const mediaMs = toSeconds(dts, timebase) * 1000;
    const arrival = at - mediaMs;
    const isNew = at > windowEnd + WINDOW_MS;
    if (isNew || (Math.abs(arrival - now.earliest) > JUMP_MS && Math.abs(arrival - before.earliest) > JUMP_MS)) {
      [now, before] = [none(), none()];
      windowEnd = at + WINDOW_MS;
    } else if (at > windowEnd) {
      [now, before] = [none(), now];
      windowEnd = at + WINDOW_MS;
    }
    now.earliest = Math.min(now.earliest, arrival);
    now.latest = Math.max(now.latest, arrival);
    const earliest = Math.min(now.earliest, before.earliest);
    const wanted = Math.min(MAX_MS, Math.max(MIN_MS, Math.max(now.latest, before.latest) - earliest));
    hold = Math.max(wanted, hold - STEP_MS);
    return mediaMs + earliest + hold;
  };
}

function none(): { earliest: number; latest: number } {
  return { earliest: Infinity, latest: -Infinity };
}
