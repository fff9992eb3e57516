/** Beyond what it may be late by, a time is later than now only where the clock is that of another timeline. */
const SLACK_MS = 50;
/** A clock that goes back by more than this was set, and is followed. */
const SET_BACK_MS = 10_000;
/** A source that is late by less than this does not change the dates at once: players take a step for a gap, and jump. */
const LATE_MS = 2000;
/** By how much the date of a cut approaches the time of such a source: no player takes that for a gap. */
const FOLLOW_MS = 10;
/** Cuts in a row whose times nobody has asked for: a stream may begin with several segments at once. */
const MAX_UNDECIDED = 8;

/** Which wall clock media times belong to, in milliseconds since the epoch; Infinity where that is not known. */
export interface MediaClock {
  at(media: number): number;
}

/**
 * The wall clock of the segments that begin at one cut, the same for all tracks. It is decided when somebody asks for the
 * first time: then more is known of a stream that begins with a burst than when the segment began. It never changes after
 * that; what the clock learns later shows in the segments of the next cut.
 */
export class WallTime implements MediaClock {
  readonly #clock: MediaClock;
  readonly #media: number;
  readonly #latest: number;
  /** The cut before, as long as the time of this one is not decided. */
  #before: WallTime | undefined;
  readonly #undecided: number;
  #wall: number | undefined;

  /**
   * @param media presentation time of the cut, in seconds
   * @param now milliseconds since the epoch
   * @param before that of the cut before: players that lay out segments by their times need them in order
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

  /** At the cut. */
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
