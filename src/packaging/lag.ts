/**
 * So many seconds a track may be behind the others. Then they go on without it: where nothing can take its place, its
 * playlist shows gaps, and it comes back to the segment that the others have come to.
 */
export const MAX_LAG_SECONDS = 4;

/** A cut that not every track need have reached, and since when it is waited for. */
interface Awaited {
  readonly msn: number;
  since: number;
}

const NONE: readonly number[] = [];

/** How far the tracks of a stream have come, and for how long they wait for each other. All times are media time, in seconds. */
export class Lag {
  /** The oldest first. */
  readonly #awaited: Awaited[] = [];
  /** Of the newest packet. */
  #newest = -Infinity;

  /** Media time of the newest packet of any track; -Infinity while there is none. */
  get newest(): number {
    return this.#newest;
  }

  /** What has brought nothing since then is too far behind. */
  get horizon(): number {
    return this.#newest - MAX_LAG_SECONDS;
  }

  /** Whether a time is near that of the newest packet. */
  isNear(time: number): boolean {
    return Math.abs(time - this.#newest) < MAX_LAG_SECONDS;
  }

  /** The stream begins with a packet of this time, also after `finish`. */
  start(time: number): void {
    this.#newest = time;
    this.#awaited.length = 0;
  }

  /** What comes next may have any time. */
  finish(): void {
    this.#newest = -Infinity;
  }

  /** The clock jumped to a time: waits begin anew. */
  jump(time: number): void {
    this.#newest = time;
    for (const cut of this.#awaited) cut.since = time;
  }

  /** A segment has begun that every track is to come to. */
  expect(msn: number, since: number): void {
    this.#awaited.push({ msn, since });
  }

  /**
   * Takes note of a packet.
   * @returns numbers of the segments that nobody waits for any more, the oldest first
   */
  note(time: number): readonly number[] {
    if (time <= this.#newest) return NONE;
    this.#newest = time;
    let given = 0;
    while ((this.#awaited[given]?.since ?? Infinity) < this.horizon) given++;
    return given === 0 ? NONE : this.#awaited.splice(0, given).map(({ msn }) => msn);
  }
}
