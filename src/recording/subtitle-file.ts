import type { FileHandle } from 'node:fs/promises';
import type { Patch } from '../containers/file-muxer.ts';
import { isSame, type PlacedCue } from '../core/cue-store.ts';
import type { Disk } from '../core/disks.ts';
import { timestamp, writtenCue } from '../packaging/subtitles/web-vtt.ts';
import { FileWriter } from './file-writer.ts';

const HEAD = Buffer.from('WEBVTT\n\n');
const WAIT_MS = 1000;
/** Limits of cues whose time has not come, and of those that the end of the file may cut, or that may come again. */
const MAX_CUES = 1000;
/** A cue no longer than this may be a piece, which goes on in another with its text that comes so late at most. In milliseconds. */
const PIECE_MS = 1000;
const LATE_MS = 500;
/** Longest cue of pieces, in milliseconds. */
const MAX_JOINED_MS = 30_000;
/** A cue may come again, as of what is kept of a stream, for so long after its end. */
const AGAIN_MS = 10_000;

/** A cue in the file, and the place of its end there. */
interface WrittenCue {
  readonly cue: PlacedCue;
  readonly at: number;
  readonly width: number;
}

export interface SubtitleFileOptions {
  /** Called with the first cue. @returns the file, empty */
  readonly open: () => Promise<FileHandle>;
  readonly disk: Disk;
  readonly onFailure: (error: Error) => void;
}

/** WebVTT file of one subtitle track, beside a recording. There is none without a cue. */
export class SubtitleFile {
  readonly #options: SubtitleFileOptions;
  /** Cues that are not written, by their start. */
  #waiting: PlacedCue[] = [];
  /** Cues that are not over, or not for long. */
  #written: WrittenCue[] = [];
  /** Cues of pieces, which others may follow. */
  readonly #joined = new WeakSet<PlacedCue>();
  #writer: FileWriter | undefined;
  /** Start of the last cue in the file: those that follow begin no earlier (WebVTT, section 4.1). */
  #last = 0;

  constructor(options: SubtitleFileOptions) {
    this.#options = options;
  }

  /** Adds a cue, once; pieces of one as a whole. @returns false for too many at a time */
  add(cue: PlacedCue): boolean {
    const isKnown = (one: PlacedCue): boolean => isSame(one, cue) || (this.#joined.has(one) && hasPiece(one, cue));
    if (this.#waiting.some(isKnown) || this.#written.some((one) => isKnown(one.cue))) return true;
    if (this.#join(cue)) return true;
    if (this.#waiting.length >= MAX_CUES) return false;
    const later = this.#waiting.findIndex(({ start }) => start > cue.start);
    this.#waiting.splice(later < 0 ? this.#waiting.length : later, 0, cue);
    return true;
  }

  /**
   * Writes the cues that begin before a time, up to one that may go on. All times are in milliseconds of the source.
   * @param zero time that is 0 in the file
   * @param isEnd no cue goes on
   */
  write(zero: number, until: number, isEnd = false): void {
    if (this.#waiting.length === 0) return;
    const later = this.#waiting.findIndex(
      (cue) => cue.start >= until || (!isEnd && cue.end + LATE_MS > until && this.#goesOn(cue)),
    );
    const due = this.#waiting.splice(0, later < 0 ? this.#waiting.length : later);
    for (const cue of due) this.#append(cue, zero);
    this.#written = this.#written.filter(({ cue }) => cue.end > until - AGAIN_MS).slice(-MAX_CUES);
  }

  /**
   * Completes the file: no cue goes on after its end.
   * @param end milliseconds of the source
   * @throws errors that prevented a write
   */
  async end(zero: number, end: number): Promise<void> {
    this.write(zero, end, true);
    const last = timestamp(end - zero);
    const patches = this.#written
      .filter(({ cue }) => cue.end > end)
      .map(({ at, width }): Patch => ({ at, data: Buffer.from(last.padStart(width, '0')) }));
    await this.#writer?.end(patches);
  }

  /** Makes a piece longer the cue that it goes on with. @returns false where there is none */
  #join(piece: PlacedCue): boolean {
    const index = this.#waiting.findIndex((one) => one.end === piece.start && isAlike(one, piece) && this.#goesOn(one));
    const one = this.#waiting[index];
    if (one === undefined || piece.end - piece.start > PIECE_MS) return false;
    const joined = { ...one, end: piece.end };
    this.#joined.add(joined);
    this.#waiting[index] = joined;
    return true;
  }

  #goesOn(cue: PlacedCue): boolean {
    const length = cue.end - cue.start;
    return length <= PIECE_MS || (length < MAX_JOINED_MS && this.#joined.has(cue));
  }

  #append(cue: PlacedCue, zero: number): void {
    const { open, disk, onFailure } = this.#options;
    const start = Math.max(this.#last, cue.start - zero);
    const end = cue.end - zero;
    if (end <= start) return;
    this.#last = start;
    if (this.#writer === undefined) {
      this.#writer = new FileWriter(open(), disk, { waitMs: WAIT_MS, onFailure });
      this.#writer.append([HEAD]);
    }
    const { head, text } = writtenCue({ ...cue, start, end });
    const width = timestamp(end).length;
    this.#written.push({ cue, at: this.#writer.bytes + head.length - width, width });
    this.#writer.append([Buffer.from(`${head}${text}\n`)]);
  }
}

function isAlike(one: PlacedCue, other: PlacedCue): boolean {
  return one.text === other.text && one.settings === other.settings;
}

/** Whether a cue of pieces has one that comes again. */
function hasPiece(one: PlacedCue, piece: PlacedCue): boolean {
  return isAlike(one, piece) && piece.start >= one.start && piece.end <= one.end;
}
