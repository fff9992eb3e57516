/** Of a source's tracks some begin earlier than what comes first. */
export const LEAD_SECONDS = 0.5;
/** Nothing of one connection, or run, is at the time of something of the one before. */
const MIN_GAP_SECONDS = 0.01;

/** The time of a stream up to now, and where it goes on when what follows counts in another way: as long after as it really took. */
export class PassedTime {
  /** Latest time given out, in seconds, and when that was, in milliseconds of the monotonic clock. */
  #latest = 0;
  #latestAt: number | undefined;

  /** Something has got a time, in seconds. */
  note(seconds: number, now: number): void {
    this.#latest = Math.max(this.#latest, seconds);
    this.#latestAt = now;
  }

  get hasBegun(): boolean {
    return this.#latestAt !== undefined;
  }

  /** Where that goes which comes first now, in seconds; undefined when nothing came before. */
  next(now: number): number | undefined {
    if (this.#latestAt === undefined) return undefined;
    return this.#latest + Math.max(LEAD_SECONDS + MIN_GAP_SECONDS, (now - this.#latestAt) / 1000);
  }
}
