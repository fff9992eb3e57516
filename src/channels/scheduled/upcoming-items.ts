import type { LengthOf, Planned } from './plan.ts';
import { isSameMedia, type ScheduleSpec } from './spec.ts';
import { Timetable } from './timetable.ts';

/** Lead time for opening an item. */
const AHEAD_MS = 3000;
/** Pause before a failed item is tried again. */
const RETRY_MS = 1000;

export interface OnAir {
  readonly planned: Planned;
  readonly isFallback: boolean;
}

/**
 * Decides which items are to be open at a time, and knows which have failed. All times in milliseconds since the
 * epoch.
 */
export class UpcomingItems {
  readonly timetable: Timetable;
  /** A failed item, until it plays or its time is over. */
  #blocked: { readonly planned: Planned; readonly retryAt: number } | undefined;
  #fallbackRetryAt = -Infinity;
  /** Consecutive failures. */
  #failures = 0;

  constructor(spec: ScheduleSpec, lengthOf: LengthOf) {
    this.timetable = new Timetable(spec, lengthOf);
  }

  /** Next item of the programs: now, where another one is on the air, or soon. */
  nextOfPrograms(wall: number, onAir: OnAir | undefined): Planned | undefined {
    if (onAir?.isFallback === false) return this.#upcoming(onAir.planned.ends, wall);
    const planned = this.timetable.at(wall);
    if (planned !== undefined && this.#mayOpen(planned, wall)) return planned;
    return this.#upcoming(planned?.ends ?? this.timetable.after(wall), wall);
  }

  /**
   * Next item of the fallback program; undefined where that is not to play.
   * @param isTroubled the item on the air may fail, or the stream has been silent for too long
   */
  nextOfFallback(wall: number, onAir: OnAir | undefined, isTroubled: boolean): Planned | undefined {
    if (wall < this.#fallbackRetryAt) return undefined;
    if (onAir?.isFallback === false) return this.#standby(wall, onAir.planned, isTroubled);
    if (onAir !== undefined) {
      const { ends } = onAir.planned;
      return ends === undefined || ends - wall > AHEAD_MS ? undefined : this.timetable.fallbackAt(ends);
    }
    const planned = this.timetable.at(wall);
    const isMissing = planned === undefined || this.#isBlocked(planned) || isTroubled;
    return isMissing ? this.timetable.fallbackAt(wall) : undefined;
  }

  /** Fallback item to keep ready beside an item of the programs, where nothing may follow that. */
  #standby(wall: number, { ends }: Planned, isTroubled: boolean): Planned | undefined {
    const isLast = ends !== undefined && ends - wall <= AHEAD_MS && !this.#isFollowed(ends);
    if (isLast || isTroubled) return this.timetable.fallbackFirst(isLast ? ends : wall);
    this.timetable.endFallback();
    return undefined;
  }

  #isFollowed(ends: number): boolean {
    const planned = this.timetable.at(ends);
    return planned !== undefined && !this.#isBlocked(planned);
  }

  /** Finds the item on the air in this schedule; undefined if it has another one now. */
  find({ isFallback, planned: { item, begins }, planned }: OnAir, wall: number): Planned | undefined {
    if (isFallback) return this.timetable.resumeFallback(item, begins);
    const present = this.timetable.at(wall);
    return present !== undefined && isSameButMoved(present, planned) ? present : undefined;
  }

  /** Resets the failures once an item plays. */
  played({ isFallback }: OnAir): void {
    this.#failures = 0;
    if (isFallback) return;
    this.#blocked = undefined;
    this.timetable.endFallback();
  }

  /** Records that an item of this schedule cannot play or continue. @returns whether it had failed before */
  failed({ planned, isFallback }: OnAir, wall: number): boolean {
    const { program, item } = planned;
    const isKnown = !isFallback && this.#isBlocked(planned);
    const isHopeless = ++this.#failures >= program.items.length;
    if (isFallback && isHopeless) this.#fallbackRetryAt = wall + RETRY_MS;
    if (isFallback) this.timetable.passFallback(planned, wall);
    else if (item.fallbackOnErr || isHopeless) this.#blocked = { planned, retryAt: wall + RETRY_MS };
    else this.timetable.pass(planned, wall);
    return isKnown;
  }

  /** Allows every item again after the clock was set. */
  forgive(): void {
    this.#blocked = undefined;
    this.#fallbackRetryAt = -Infinity;
  }

  #upcoming(at: number | undefined, wall: number): Planned | undefined {
    if (at === undefined || at - wall > AHEAD_MS) return undefined;
    const planned = this.timetable.at(at);
    return planned !== undefined && this.#mayOpen(planned, wall) ? planned : undefined;
  }

  #mayOpen(planned: Planned, wall: number): boolean {
    return !this.#isBlocked(planned) || wall >= (this.#blocked?.retryAt ?? 0);
  }

  #isBlocked(planned: Planned): boolean {
    return this.#blocked !== undefined && isSameEntry(this.#blocked.planned, planned);
  }
}

/** Tests whether two entries are the same item at the same time of the schedule. */
export function isSameEntry(one: Planned, other: Planned): boolean {
  return one.begins === other.begins && isSameMedia(one.item, other.item);
}

/** Tests whether two entries are the same item in a schedule that has changed. */
function isSameButMoved(one: Planned, other: Planned): boolean {
  return Math.abs(one.begins - other.begins) < RETRY_MS && isSameMedia(one.item, other.item);
}
