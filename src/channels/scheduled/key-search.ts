import { unitLength, type ItemUnit } from './item-source.ts';
import type { UnitQueue } from './unit-queue.ts';

const MAX_BYTES = 32 * 1024 * 1024;
/** Times of files are rounded. */
const ROUNDING_MS = 2;

/**
 * Begins a file with the last key frame before a position: units are held back until one is later than that. Where
 * the bytes held back exceed the limit, it begins with the next key frame; without video, with the first frame at the
 * position.
 */
export class KeySearch {
  readonly #queue: UnitQueue;
  readonly #position: number;
  readonly #hasVideo: boolean;
  #found = false;
  /** Too much was held back: all units are dropped until the next key frame. */
  #isSkipping = false;
  #key: ItemUnit | undefined;

  constructor(queue: UnitQueue, position: number, hasVideo: boolean) {
    this.#queue = queue;
    this.#position = position + ROUNDING_MS;
    this.#hasVideo = hasVideo;
  }

  /** Whether the queue begins with the start unit. */
  get found(): boolean {
    return this.#found;
  }

  push(unit: ItemUnit): void {
    const { track, key, shownAt } = unit;
    if (!this.#hasVideo) {
      if (!this.#found && shownAt + unitLength(unit) <= this.#position) return;
      if (track.type !== 'data') this.#found = true;
      this.#queue.push(unit);
      return;
    }
    const isKey = key && track.type === 'video';
    if (this.#isSkipping && !isKey) return;
    this.#isSkipping = false;
    this.#queue.push(unit);
    if (!this.#found && track.type === 'video') this.#look(unit, isKey);
    if (this.#found || this.#queue.bytes < MAX_BYTES) return;
    this.#queue.clear();
    this.#key = undefined;
    this.#isSkipping = true;
  }

  end(): void {
    this.#found = true;
  }

  #look(unit: ItemUnit, isKey: boolean): void {
    const isEarly = unit.shownAt <= this.#position;
    if (isKey && (isEarly || this.#key === undefined)) {
      this.#key = unit;
      // audio before the very first frame of video may be all the audio there is for a while
      if (isEarly) this.#queue.beginWith(unit);
    }
    if (!isEarly) this.#found = true;
  }
}
