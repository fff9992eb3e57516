import { createHash, type Hash } from 'node:crypto';
import { extinf, tsExtinf } from '../../../packaging/listed-duration.ts';
import { changedLines } from '../../../packaging/drm/key-tags.ts';
import { TextPiece } from '../answer/text.ts';
import type { PastSegment } from './journal.ts';

/** Segments in a block. */
const MOST = 256;
const DISCONTINUITY = '#EXT-X-DISCONTINUITY\n';
const GAP = '#EXT-X-GAP\n';
const DATE = '#EXT-X-PROGRAM-DATE-TIME:';
const IS_GAP = 1;
const IS_DISCONTINUITY = 2;

/** Names of segments of HLS with MPEG-TS, subtitles among them. */
const OF_TS = /_hls\.\w+(?:\?|$)/;

/** The tag that a segment had at the live edge: it must not change. */
function durationTag(name: string, seconds: number): string {
  return OF_TS.test(name) ? tsExtinf(seconds) : extinf(seconds);
}

/** Segments with one initialization that follow each other: their playlist lines and times, in less than 200 bytes each. */
export class PastBlock {
  /** Media sequence number of the first segment. */
  readonly first: number;
  /** File name of the initialization of all. */
  readonly init: string | undefined;
  /** Playlist lines of the keys of all; '' for segments in clear. */
  readonly keys: string;
  readonly #query: string;
  readonly #durations = new Float64Array(MOST);
  readonly #wallClocks = new Float64Array(MOST);
  readonly #discontinuities = new Uint32Array(MOST);
  readonly #flags = new Uint8Array(MOST);
  /** Bytes up to the end of the first frame of each segment; 0 for none. */
  readonly #iFrames = new Uint32Array(MOST);
  /** Where the lines of each segment begin, in bytes, and where the last ones end. */
  readonly #offsets = new Uint32Array(MOST + 1);
  #text: Buffer = Buffer.alloc(0);
  #count = 0;
  /** Last lines of I-frames that were asked for. */
  #iFrameLines: { readonly from: number; readonly to: number; readonly piece: TextPiece } | undefined;
  /** Last piece of the text that was asked for. */
  #piece: { readonly from: number; readonly to: number; readonly piece: TextPiece } | undefined;

  constructor(first: number, init: PastSegment['init'], query: string) {
    this.first = first;
    this.init = init?.name;
    this.keys = init?.keys ?? '';
    this.#query = query;
  }

  /** Media sequence number of the segment that follows. */
  get next(): number {
    return this.first + this.#count;
  }

  takes({ init }: PastSegment): boolean {
    return this.#count < MOST && init?.name === this.init && (init?.keys ?? '') === this.keys;
  }

  append(segment: PastSegment): void {
    const { name, duration, wallClock, discontinuity, discontinuitySequence, gap, breaks, keyFrame } = segment;
    const index = this.#count++;
    this.#durations[index] = duration;
    this.#wallClocks[index] = wallClock;
    this.#discontinuities[index] = discontinuitySequence;
    this.#iFrames[index] = keyFrame ?? 0;
    this.#flags[index] = (gap ? IS_GAP : 0) | (discontinuity ? IS_DISCONTINUITY : 0);
    const date = new Date(wallClock).toISOString();
    const lines =
      `${discontinuity ? DISCONTINUITY : ''}${breaks}${DATE}${date}\n${gap ? GAP : ''}` +
      `${durationTag(name, duration)}\n${name}${this.#query}\n`;
    this.#text = joined(this.#text, Buffer.from(lines));
    this.#offsets[index + 1] = this.#text.length;
  }

  /** Seconds. */
  duration(msn: number): number {
    return this.#durations[msn - this.first] as number;
  }

  /** Milliseconds since the epoch. */
  wallClock(msn: number): number {
    return this.#wallClocks[msn - this.first] as number;
  }

  discontinuitySequence(msn: number): number {
    return this.#discontinuities[msn - this.first] as number;
  }

  isDiscontinuity(msn: number): boolean {
    return ((this.#flags[msn - this.first] as number) & IS_DISCONTINUITY) !== 0;
  }

  isGap(msn: number): boolean {
    return ((this.#flags[msn - this.first] as number) & IS_GAP) !== 0;
  }

  /** A segment as it was appended. @param name file name of its media */
  segment(msn: number, name: string): PastSegment {
    const index = msn - this.first;
    const lines = this.#text.subarray(this.#offsets[index], this.#offsets[index + 1]).toString();
    const discontinuity = this.isDiscontinuity(msn);
    return {
      ...{ name, msn, discontinuity },
      duration: this.duration(msn),
      wallClock: this.wallClock(msn),
      discontinuitySequence: this.discontinuitySequence(msn),
      gap: this.isGap(msn),
      breaks: lines.slice(discontinuity ? DISCONTINUITY.length : 0, lines.indexOf(DATE)),
      ...(this.init !== undefined && { init: { name: this.init, ...(this.keys !== '' && { keys: this.keys }) } }),
      ...(this.#iFrames[index] !== 0 && { keyFrame: this.#iFrames[index] as number }),
    };
  }

  /** Removes the segments from a number on. */
  truncate(next: number): void {
    this.#count = Math.min(this.#count, next - this.first);
    // lines that were handed out stay as they are
    this.#text = joined(this.#text.subarray(0, this.#offsets[this.#count]));
    this.#piece = undefined;
    this.#iFrameLines = undefined;
  }

  /** Adds what is known of segments to digests, one for each column, which it makes where they are missing, from one number up to another, the higher excluded. */
  addTo(columns: Hash[], from: number, to: number): void {
    const all = [this.#durations, this.#wallClocks, this.#discontinuities, this.#flags, this.#iFrames];
    for (const [index, column] of all.entries())
      (columns[index] ??= createHash('sha256')).update(column.subarray(from - this.first, to - this.first));
  }

  /** Lists a segment as a gap. Idempotent. */
  markGap(msn: number): void {
    if (this.isGap(msn)) return;
    const index = msn - this.first;
    this.#flags[index] = (this.#flags[index] as number) | IS_GAP;
    const [from, to] = [this.#offsets[index] as number, this.#offsets[index + 1] as number];
    const at = from + this.#text.subarray(from, to).lastIndexOf('#EXTINF');
    // lines that were handed out stay as they are
    this.#text = joined(this.#text.subarray(0, at), Buffer.from(GAP), this.#text.subarray(at));
    this.#piece = undefined;
    this.#iFrameLines = undefined;
    for (let after = index + 1; after <= this.#count; after++)
      this.#offsets[after] = (this.#offsets[after] as number) + GAP.length;
  }

  /**
   * Lines of the segments from one number up to another, the higher excluded.
   * @param before the block before, whose initialization and keys are in force
   */
  pieces(from: number, to: number, before: PastBlock | undefined): TextPiece[] {
    const [start, end] = [from - this.first, to - this.first];
    const offset = this.#offsets[start] as number;
    if (before?.init === this.init) return [this.#pieceOf(offset, this.#offsets[end] as number)];
    const tag = this.isDiscontinuity(from) ? DISCONTINUITY : '';
    const head = new TextPiece(Buffer.from(tag + this.#head(before)));
    return [head, this.#pieceOf(offset + tag.length, this.#offsets[end] as number)];
  }

  /** Lines of the first frames of the segments, as of `pieces`. Those without one are gaps, so that numbers stay the same. */
  iFrames(from: number, to: number, before: PastBlock | undefined): TextPiece[] {
    const tag = this.isDiscontinuity(from) ? DISCONTINUITY : '';
    const head = tag + this.#head(before);
    if (this.#iFrameLines?.from !== from || this.#iFrameLines.to !== to) {
      let lines = '';
      for (let msn = from; msn < to; msn++)
        lines += (msn > from && this.isDiscontinuity(msn) ? DISCONTINUITY : '') + this.#iFrame(msn);
      this.#iFrameLines = { from, to, piece: new TextPiece(Buffer.from(lines)) };
    }
    return [...(head === '' ? [] : [new TextPiece(Buffer.from(head))]), this.#iFrameLines.piece];
  }

  /** Lines that name keys and initialization where they change. */
  #head(before: PastBlock | undefined): string {
    if (this.init === undefined || before?.init === this.init) return '';
    return `${changedLines(this.keys, before?.keys ?? '')}#EXT-X-MAP:URI="${this.init}${this.#query}"\n`;
  }

  #iFrame(msn: number): string {
    const index = msn - this.first;
    const lines = this.#text.subarray(this.#offsets[index], this.#offsets[index + 1]).toString();
    const name = lines.slice(lines.lastIndexOf('\n', lines.length - 2) + 1);
    const bytes = this.isGap(msn) ? 0 : (this.#iFrames[index] as number);
    const range = bytes === 0 ? GAP : `#EXT-X-BYTERANGE:${bytes}@0\n`;
    const date = new Date(this.wallClock(msn)).toISOString();
    return `${DATE}${date}\n${range}${durationTag(name.trimEnd(), this.duration(msn))}\n${name}`;
  }

  #pieceOf(from: number, to: number): TextPiece {
    if (this.#piece?.from !== from || this.#piece.to !== to)
      this.#piece = { from, to, piece: new TextPiece(this.#text.subarray(from, to)) };
    return this.#piece.piece;
  }
}

/** Joins buffers in memory of its own: a part of what Node.js allocates for many would keep all of it. */
function joined(...buffers: readonly Buffer[]): Buffer {
  const all = Buffer.allocUnsafeSlow(buffers.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const buffer of buffers) at += buffer.copy(all, at);
  return all;
}
