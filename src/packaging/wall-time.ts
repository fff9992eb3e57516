import { wallClock, type Anchor } from './cut.ts';

/** Beyond this the wall clock and the source's clock have parted. */
const MAX_DRIFT_MS = 1000;
/** So many segments in a row begin so far off before that is believed. */
const PARTED = 3;

/**
 * Which moment of the wall clock the media times of a stream belong to. A source that was held up sends soon what it could
 * not send, and is on time again: the times of its segments go on as if nothing had been, for players lay out all tracks by
 * them. Only clocks that have parted for good get a new anchor.
 */
export class WallTime {
  #anchor: Anchor = { wall: 0, media: 0 };
  /** What the segments say that began too far off, one after the other. */
  #parted: Anchor[] = [];

  get anchor(): Anchor {
    return this.#anchor;
  }

  /** A media time, in seconds, is now; what was before does not count. @param wall milliseconds since the epoch */
  begin(media: number, wall = Date.now()): void {
    this.#anchor = { wall, media };
    this.#parted = [];
  }

  /** A segment begins now. @param wall milliseconds since the epoch */
  note(media: number, wall = Date.now()): void {
    if (Math.abs(wall - wallClock(this.#anchor, media)) <= MAX_DRIFT_MS) {
      this.#parted = [];
      return;
    }
    this.#parted.push({ wall, media });
    if (this.#parted.length < PARTED) return;
    const [earliest] = this.#parted.sort((one, other) => wallClock(one, 0) - wallClock(other, 0)) as [Anchor];
    this.#anchor = earliest;
    this.#parted = [];
  }
}
