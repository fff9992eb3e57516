/** Milliseconds of tolerance: a time later than now means that the clock belongs to another timeline. */
const SLACK_MS = 50;
/** A clock that goes back by more than this was set anew, and is followed. */
const SET_BACK_MS = 10_000;
/** Lateness below this changes dates gradually: players take a step for a gap, and jump. */
const LATE_MS = 2000;
/** Step per cut for such lateness: no player takes it for a gap. */
const FOLLOW_MS = 10;
/** Consecutive cuts whose times may be undecided: a stream may begin with several segments at once. */
const MAX_UNDECIDED = 8;

/** Maps media time to wall clock, in milliseconds since the epoch; Infinity where unknown. */
export interface MediaClock {
  at(media: number): number;
}

/**
 * Wall clock of the segments that begin at one cut, the same for all tracks. The first request decides it: by then, more
 * is known of a stream that begins with a burst than when the segment began. It never changes afterwards; later
 * corrections of the clock apply from the next cut.
 */
export class WallTime implements MediaClock {
  readonly #clock: MediaClock;
  readonly #media: number;
  readonly #latest: number;
  /** Undefined once the time of this cut is decided. */
  #before: WallTime | undefined;
  readonly #undecided: number;
  #wall: number | undefined;

  /**
   * @param media presentation time of the cut, in seconds
   * @param now milliseconds since the epoch
   * @param before wall time of the cut before: players that place segments by their times need them in order
   */
  constructor(clock: MediaClock, media: number, now: number, before?: WallTime) {
    this.#clock = clock;
    this.#media = media;
    this.#latest = now;
    this.#before = before;
    this.#undecided = before === undefined || before.#wall !== undefined ? 0 : before.#undecided + 1;
    if (this.#undecided > MAX_UNDECIDED) before?.at(media);
  }

  at(media: number): number {
    return this.#decided + (media - this.#media) * 1000;
  }

  /** Milliseconds since the epoch, at the cut. */
  get #decided(): number {
    if (this.#wall === undefined) {
      const wall = this.#arrived();
      this.#wall = this.#before === undefined ? wall : this.#after(this.#before, wall);
      this.#before = undefined;
    }
    return this.#wall;
  }

  #after(before: WallTime, wall: number): number {
    const earliest = before.#decided + 1;
    if (wall < earliest) return wall > earliest - SET_BACK_MS ? earliest : wall;
    const lateness = wall - before.at(this.#media);
    return lateness > FOLLOW_MS && lateness < LATE_MS ? wall - lateness + FOLLOW_MS : wall;
  }

  #arrived(): number {
    const wall = this.#clock.at(this.#media);
    return wall > this.#latest + SLACK_MS ? this.#latest : wall;
  }
}
