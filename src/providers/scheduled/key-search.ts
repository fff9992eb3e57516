import { unitLength, type ItemUnit } from './item-source.ts';
import type { UnitQueue } from './unit-queue.ts';

/** Units of one run of frames that may have to wait until it is known where to begin. */
const MAX_BYTES = 96 * 1024 * 1024;
/** Times of files are rounded. */
const ROUNDING_MS = 2;

/**
 * Begins a file with the last key frame in front of a position: what comes is held back until something is later than
 * that. Without video it begins with the first frame at the position.
 */
export class KeySearch {
  readonly #queue: UnitQueue;
  readonly #position: number;
  readonly #hasVideo: boolean;
  #found = false;
  #key: ItemUnit | undefined;

  constructor(queue: UnitQueue, position: number, hasVideo: boolean) {
    this.#queue = queue;
    this.#position = position + ROUNDING_MS;
    this.#hasVideo = hasVideo;
  }

  /** Whether what is in the queue is where it begins. */
  get found(): boolean {
    return this.#found;
  }

  /** @returns why the search is given up; undefined when it goes on, or is over */
  push(unit: ItemUnit): string | undefined {
    const { track, key, shownAt } = unit;
    if (!this.#hasVideo) {
      if (!this.#found && shownAt + unitLength(unit) <= this.#position) return undefined;
      this.#found = true;
      this.#queue.push(unit);
      return undefined;
    }
    this.#queue.push(unit);
    if (this.#found || track.type !== 'video') return this.#limit();
    if (key && (shownAt <= this.#position || this.#key === undefined)) {
      this.#key = unit;
      // what is in front of the very first picture may be all the sound there is for a while
      if (shownAt <= this.#position) this.#queue.beginWith(unit);
    }
    if (shownAt > this.#position) this.#found = true;
    return this.#limit();
  }

  /** Nothing more comes. */
  end(): void {
    this.#found = true;
  }

  #limit(): string | undefined {
    if (this.#found || this.#queue.bytes < MAX_BYTES) return undefined;
    return 'there is no key frame near the position';
  }
}
