import type { Logger } from '../../../log/log.ts';
import type { RunFiles } from './run-files.ts';
import type { Shelf } from './shelf.ts';

export interface RoomOptions {
  readonly files: Pick<RunFiles, 'folder' | 'free' | 'packs' | 'remove'>;
  /** Free bytes that the disk keeps. */
  readonly minFree: number;
  /** Nothing leaves early. */
  readonly event: boolean;
  /** Called when there is too little room, and nothing leaves. */
  readonly onFull: () => void;
  readonly log: Logger;
}

/** A segment that is to be written. */
interface Wanted {
  readonly shelf: Shelf;
  readonly segment: { readonly msn: number };
}

const FREE_CHECK_MS = 5000;
/** Segments that leave early for each new one, at least, while the disk has too little room. */
const EARLY = 2;

/** Room on the disk for the segments of a run. */
export class Room {
  readonly #options: RoomOptions;
  readonly #shelves: ReadonlyMap<string, Shelf>;
  readonly #takeLeaving: () => string[];
  /** Segments for which there is room because older ones have left early. */
  #left = 0;
  #checkedAt = -Infinity;
  #isShort = false;

  /** @param takeLeaving file names of segments that have left their playlists, each once */
  constructor(options: RoomOptions, shelves: ReadonlyMap<string, Shelf>, takeLeaving: () => string[]) {
    this.#options = options;
    this.#shelves = shelves;
    this.#takeLeaving = takeLeaving;
  }

  /** Why segments cannot be written; undefined: they can. Never rejects. */
  async refusal(waiting: readonly Wanted[]): Promise<string | undefined> {
    try {
      return (await this.#hasRoom(waiting)) ? undefined : 'the disk is full';
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** Whether the disk has room for segments. Where it has too little, older ones make room: a pack of them. */
  async #hasRoom(waiting: readonly Wanted[]): Promise<boolean> {
    const { files, minFree, event, onFull, log } = this.#options;
    const now = performance.now();
    if (now - this.#checkedAt >= FREE_CHECK_MS) {
      this.#checkedAt = now;
      const isShort = (await files.free()) < minFree;
      if (isShort && !this.#isShort)
        log.warn({ event: 'rewind.short', folder: files.folder }, 'too little disk space to rewind');
      this.#isShort = isShort;
      if (!isShort) this.#left = 0;
    }
    if (!this.#isShort) return true;
    if (event) {
      onFull();
      return false;
    }
    if (this.#left < waiting.length) {
      const left = await this.#leaveEarly(waiting);
      if (left === 0) return false;
      this.#left += left / EARLY;
    }
    this.#left = Math.max(0, this.#left - waiting.length);
    return true;
  }

  /** Removes the oldest pack, or else the oldest segments. @returns the number of segments that have left; 0 if no file is gone */
  async #leaveEarly(waiting: readonly Wanted[]): Promise<number> {
    const { files } = this.#options;
    const shelves = [...this.#shelves.values()];
    const first = firstOf(this.#shelves);
    const { from, to } = (await files.packs.oldest()) ?? { from: Infinity, to: 0 };
    // earlier versions have left a file for each segment
    const before = from <= first ? to : first + EARLY;
    const names = this.#takeLeaving();
    for (const shelf of shelves) {
      const own = waiting.find((one) => one.shelf === shelf)?.segment.msn ?? shelf.past.next - 1;
      names.push(...shelf.drop(Math.min(before, own)));
    }
    let removed = 0;
    for (const name of names) if (await files.remove(name)) removed++;
    // those that became gaps have left without a name
    removed += await files.packs.removeBefore(Math.min(before, firstOf(this.#shelves)));
    return removed === 0 ? 0 : Math.max(removed, names.length);
  }
}

/** Number of the oldest listed segment of any media playlist; 0 where none is listed. */
export function firstOf(shelves: ReadonlyMap<string, Shelf>): number {
  const listed = [...shelves.values()].filter(({ past }) => !past.empty);
  return listed.length === 0 ? 0 : Math.min(...listed.map(({ past }) => past.first));
}
