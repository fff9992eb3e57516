/**
 * Seconds that a track may be behind the others before they continue without it. Where nothing can replace it, its
 * playlist has gaps, and it returns at the segment that the others have reached.
 */
export const MAX_LAG_SECONDS = 4;

/** A cut that some tracks may not have reached, and the media time from which they are waited for. */
interface Awaited {
  readonly msn: number;
  since: number;
}

const NONE: readonly number[] = [];

/** Limits how long the tracks of a stream wait for each other. All times are media time, in seconds. */
export class TrackLag {
  /** Oldest first. */
  readonly #awaited: Awaited[] = [];
  #newest = -Infinity;

  /** Media time of the newest packet of any track; -Infinity while there is none. */
  get newest(): number {
    return this.#newest;
  }

  /** Tracks without a packet since this time are too far behind. */
  get horizon(): number {
    return this.#newest - MAX_LAG_SECONDS;
  }

  isNear(time: number): boolean {
    return Math.abs(time - this.#newest) < MAX_LAG_SECONDS;
  }

  /** Begins with a packet of this time, also after an end. */
  start(time: number): void {
    this.#newest = time;
    this.#awaited.length = 0;
  }

  /** Restarts the waits after a jump of the clock. */
  jump(time: number): void {
    this.#newest = time;
    for (const cut of this.#awaited) cut.since = time;
  }

  expect(msn: number, since: number): void {
    this.#awaited.push({ msn, since });
  }

  /**
   * Moves on to the time of a packet.
   * @returns sequence numbers of the segments whose wait is over, oldest first
   */
  note(time: number): readonly number[] {
    if (time <= this.#newest) return NONE;
    this.#newest = time;
    let given = 0;
    while ((this.#awaited[given]?.since ?? Infinity) < this.horizon) given++;
    return given === 0 ? NONE : this.#awaited.splice(0, given).map(({ msn }) => msn);
  }
}
