/** Room for tracks that begin earlier than the packet that comes first. */
export const LEAD_SECONDS = 0.5;
/** Keeps times of one connection, or run, apart from those of the previous one. */
const MIN_GAP_SECONDS = 0.01;

/** Time of a stream so far, and where it continues on a new source clock: later by the time that really passed. */
export class PassedTime {
  /** Latest time given out, in seconds, and when that was, in milliseconds of the monotonic clock. */
  #latest = 0;
  #latestAt: number | undefined;

  note(seconds: number, now: number): void {
    this.#latest = Math.max(this.#latest, seconds);
    this.#latestAt = now;
  }

  get hasBegun(): boolean {
    return this.#latestAt !== undefined;
  }

  /** Time of the next first packet, in seconds; undefined when there was none before. */
  next(now: number): number | undefined {
    if (this.#latestAt === undefined) return undefined;
    return this.#latest + Math.max(LEAD_SECONDS + MIN_GAP_SECONDS, (now - this.#latestAt) / 1000);
  }
}
