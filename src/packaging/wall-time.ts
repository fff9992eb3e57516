import { wallClock, type Anchor } from './cut.ts';

/** Beyond this the wall clock and the source's clock have parted. */
const MAX_DRIFT_MS = 1000;
/** So many segments in a row begin so late before that is believed. */
const PARTED = 3;
/** One that is less late than the one before by more than this catches up. */
const CATCH_UP_MS = 500;

/**
 * Which moment of the wall clock the media times of a stream belong to. A source that was held up sends soon what it could
 * not send, and is on time again: the times of its segments go on as if nothing had been, for players lay out all tracks by
 * them. Only a clock that is behind for good gets a new anchor. One that is ahead gets it at once: nothing comes before its
 * time, so it is the anchor that came late, as with what a relay has kept for those who come.
 */
export class WallTime {
  #anchor: Anchor = { wall: 0, media: 0 };
  /** What the segments say that began too late, one after the other. */
  #late: Anchor[] = [];

  get anchor(): Anchor {
    return this.#anchor;
  }

  /** A media time, in seconds, is now; what was before does not count. @param wall milliseconds since the epoch */
  begin(media: number, wall = Date.now()): void {
    this.#anchor = { wall, media };
    this.#late = [];
  }

  /** A segment begins now. @param wall milliseconds since the epoch */
  note(media: number, wall = Date.now()): void {
    const lateMs = wall - wallClock(this.#anchor, media);
    if (lateMs < -MAX_DRIFT_MS) return this.begin(media, wall);
    if (lateMs <= MAX_DRIFT_MS) {
      this.#late = [];
      return;
    }
    const last = this.#late.at(-1);
    if (last !== undefined && wallClock(last, media) - wall > CATCH_UP_MS) this.#late = [];
    this.#late.push({ wall, media });
    if (this.#late.length < PARTED) return;
    const [earliest] = this.#late.sort((one, other) => wallClock(one, 0) - wallClock(other, 0)) as [Anchor];
    this.begin(earliest.media, earliest.wall);
  }
}
