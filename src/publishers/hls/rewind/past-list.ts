import { createHash, type Hash } from 'node:crypto';
import type { TextPiece } from '../answer/text.ts';
import type { PastSegment } from './journal.ts';
import { nameOf, numberedName } from './numbered-name.ts';
import { PastBlock } from './past-block.ts';

/** Lines other than date ranges. */
const NO_RANGE = /^(?!#EXT-X-DATERANGE:).*\n/gm;
/** Segments in holes; with more, the list begins anew. */
const MAX_MISSING = 10_000;
/** Share of its length by which a gap may begin apart from the segment of its number elsewhere. */
const APART = 0.25;

/** Times of a segment, which are those of the segments of the same number in all playlists of a stream (RFC 8216bis 6.2.4). */
export type SegmentTimes = Pick<PastSegment, 'duration' | 'wallClock' | 'discontinuity' | 'discontinuitySequence'>;

/**
 * Complete segments of one media playlist, as far back as players may rewind. Media sequence numbers have no holes:
 * missing segments are listed as gaps.
 */
export class PastList {
  /** Query of every name, with its `?`; empty for none. */
  readonly #query: string;
  readonly #elsewhere: (msn: number) => SegmentTimes | undefined;
  /** Oldest first. */
  #blocks: PastBlock[] = [];
  #first = 0;
  #next = 0;
  /** Date ranges in front of segments, oldest first: there are few. */
  #ranges: { readonly msn: number; readonly lines: string }[] = [];
  /** Segments in holes so far. */
  #missingCount = 0;
  #changes = 0;
  #fills = 0;
  #hasIFrames = false;
  #seconds = 0;
  #longest = 0;

  /**
   * @param query of every name, with its `?`; empty for none
   * @param elsewhere finds the times of a segment in another playlist of the stream; undefined where none has it
   */
  constructor(query: string, elsewhere: (msn: number) => SegmentTimes | undefined = () => undefined) {
    this.#query = query;
    this.#elsewhere = elsewhere;
  }

  /** Media sequence number of the oldest segment; that of the next one while the list is empty. */
  get first(): number {
    return this.#first;
  }

  /** Media sequence number of the segment that follows. */
  get next(): number {
    return this.#next;
  }

  get empty(): boolean {
    return this.#first === this.#next;
  }

  /** Seconds of all segments. */
  get seconds(): number {
    return this.#seconds;
  }

  /** Whether some segment had a frame that can be decoded alone. */
  get hasIFrames(): boolean {
    return this.#hasIFrames;
  }

  /** Number of segments that became gaps. */
  get changes(): number {
    return this.#changes;
  }

  /** Number of times that segments were listed in place of gaps. */
  get fills(): number {
    return this.#fills;
  }

  /** Seconds of the longest segment so far. It never falls: players expect the same target duration each time. */
  get longest(): number {
    return this.#longest;
  }

  /**
   * Adds the next segment. Earlier ones are ignored; numbers that were left out become gaps.
   * @returns whether it was added
   */
  add(segment: PastSegment): boolean {
    const { msn } = segment;
    if (!this.empty && msn < this.#next) return false;
    this.#missingCount += this.empty ? 0 : msn - this.#next;
    if (this.empty || this.#missingCount > MAX_MISSING) {
      this.#missingCount = 0;
      this.#blocks = [];
      this.#ranges = [];
      this.#first = this.#next = msn;
      this.#seconds = 0;
    }
    while (this.#next < msn) this.#append(this.#missing(segment));
    this.#append(this.#placed(segment));
    return true;
  }

  /**
   * Lists gaps up to a number that other playlists of the stream have reached, unless they are too many.
   * @param msn number after the last gap
   * @param name file name of any segment
   */
  extend(msn: number, name: string): void {
    if (this.empty || this.#missingCount + msn - this.#next > MAX_MISSING) return;
    this.#missingCount += Math.max(0, msn - this.#next);
    while (this.#next < msn) this.#append(this.#missing({ name, wallClock: Infinity }));
  }

  /** Times of a listed segment; undefined for any other. */
  times(msn: number): SegmentTimes | undefined {
    if (!this.lists(msn)) return undefined;
    const block = this.#blockOf(msn);
    return {
      duration: block.duration(msn),
      wallClock: block.wallClock(msn),
      discontinuity: block.isDiscontinuity(msn),
      discontinuitySequence: block.discontinuitySequence(msn),
    };
  }

  /** Removes the segments before a number. */
  dropBefore(msn: number): void {
    for (const until = Math.min(msn, this.#next); this.#first < until; this.#first++)
      this.#seconds -= this.duration(this.#first);
    this.#blocks = this.#blocks.filter(({ next }) => next > this.#first);
    this.#ranges = this.#ranges.filter((range) => range.msn >= this.#first);
  }

  /** Removes the segments from a number on. */
  truncate(from: number): void {
    for (; this.#next > Math.max(from, this.#first); this.#next--) this.#seconds -= this.duration(this.#next - 1);
    this.#blocks = this.#blocks.filter(({ first }) => first < this.#next);
    this.#blocks.at(-1)?.truncate(this.#next);
    this.#ranges = this.#ranges.filter(({ msn }) => msn < this.#next);
    this.#changes++;
  }

  /** Digest of what is known of the listed segments before a number: that of another list with the same segments is the same. */
  digest(before: number): string {
    const columns: Hash[] = [];
    const all = createHash('sha256').update(`${this.#first} ${before} ${this.dateRanges(before)}\n`);
    let last: string | undefined;
    for (const block of this.#blocks) {
      const [from, to] = [Math.max(this.#first, block.first), Math.min(before, block.next)];
      if (from >= to) continue;
      const head = `${block.init}\n${block.keys}`;
      if (head !== last) all.update(`${from} ${head}\n`);
      last = head;
      block.addTo(columns, from, to);
    }
    for (const column of columns) all.update(column.digest());
    return all.digest('base64url');
  }

  /** Lists a segment as a gap, since its media is not there. Idempotent. */
  markGap(msn: number): void {
    if (!this.has(msn)) return;
    this.#blockOf(msn).markGap(msn);
    this.#changes++;
  }

  /**
   * Lists segments in place of gaps, and gaps where they are at another time than elsewhere; others are ignored. Numbers of
   * discontinuities follow from what is listed then.
   * @returns media sequence numbers of those that are listed now, gaps left out
   */
  fill(segments: readonly PastSegment[]): number[] {
    const isMissing = (segment: PastSegment): boolean =>
      this.lists(segment.msn) && !this.has(segment.msn) && (!segment.gap || !this.#isTimely(segment));
    const found = new Map(segments.filter(isMissing).map((segment) => [segment.msn, segment]));
    if (found.size === 0) return [];
    const numbers = [...found.keys()];
    const filled = numbers.filter((msn) => found.get(msn)?.gap === false);
    let last = Math.max(...numbers);
    // up to the first segment after gaps
    do last++;
    while (last < this.#next && !this.has(last));
    const start = this.#blocks.findLastIndex(({ first }) => first <= Math.min(...numbers));
    const end = this.#blocks.findLastIndex(({ first }) => first <= last) + 1;
    const before = this.#blocks.slice(start, end);
    const blocks: PastBlock[] = [];
    const from = Math.max(this.#first, before[0]?.first ?? 0);
    let discontinuities = from > this.#first ? this.discontinuitiesTo(from - 1) : undefined;
    for (let msn = from; msn < (before.at(-1)?.next ?? 0); msn++) {
      const segment = numbered(found.get(msn) ?? this.segment(msn, shapedAs(segments, msn)), discontinuities);
      discontinuities = segment.discontinuitySequence + (segment.discontinuity ? 1 : 0);
      if (found.has(msn)) this.#seconds += segment.duration - this.duration(msn);
      this.#appendTo(blocks, segment);
    }
    this.#blocks.splice(start, end - start, ...blocks);
    for (const segment of found.values()) if (!segment.gap) this.#note(segment);
    this.#ranges.sort((one, other) => one.msn - other.msn);
    this.#fills++;
    this.#changes++;
    return filled;
  }

  /**
   * Lists gaps anew that are at another time than the segments of their numbers elsewhere.
   * @param numbers of segments that are listed elsewhere now
   * @param nameOf makes the file name of a segment
   */
  retime(numbers: readonly number[], nameOf: (msn: number) => string): void {
    const gaps = numbers.filter((msn) => this.lists(msn) && !this.has(msn));
    this.fill(gaps.map((msn) => ({ ...this.segment(msn, nameOf(msn)), ...this.#elsewhere(msn) })));
  }

  /** A gap at the time of the segment of its number elsewhere, unless it is there already. Others stay as they are. */
  agreed(segment: PastSegment): PastSegment {
    const times = segment.gap ? this.#elsewhere(segment.msn) : undefined;
    return times === undefined || isTimely(segment, times) ? segment : { ...segment, ...times };
  }

  /** Lists all segments of an initialization as gaps, since that is not there. */
  markGapsOf(init: string): void {
    for (const block of this.#blocks) {
      if (block.init !== init) continue;
      for (let msn = Math.max(block.first, this.#first); msn < block.next; msn++) this.markGap(msn);
    }
  }

  /** Whether a segment is listed, with or without media. */
  lists(msn: number): boolean {
    return msn >= this.#first && msn < this.#next;
  }

  /** Whether a segment is listed and has media. */
  has(msn: number): boolean {
    return this.lists(msn) && !this.#blockOf(msn).isGap(msn);
  }

  /** End of a listed segment, in milliseconds since the epoch. */
  end(msn: number): number {
    const block = this.#blockOf(msn);
    return block.wallClock(msn) + block.duration(msn) * 1000;
  }

  /** Lines of date ranges in front of the listed segments before a number. */
  dateRanges(before: number): string {
    return this.#ranges.map(({ msn, lines }) => (msn < before ? lines : '')).join('');
  }

  /** Whether a listed segment has a date range with an id in front of it. */
  hasDateRange(id: string): boolean {
    return this.#ranges.some(({ lines }) => lines.includes(`:ID="${id}"`));
  }

  /** Seconds of a listed segment. */
  duration(msn: number): number {
    return this.#blockOf(msn).duration(msn);
  }

  /**
   * Seconds from a time to the beginning of a segment, as players count them. They begin with the first media that ends after the time;
   * undefined where there is none.
   * @param time milliseconds since the epoch
   * @param until number of the segment
   */
  secondsFrom(time: number, until: number): number | undefined {
    let seconds: number | undefined;
    for (const block of this.#blocks) {
      for (let msn = Math.max(block.first, this.#first); msn < Math.min(block.next, until); msn++) {
        const duration = block.duration(msn);
        const into = (time - block.wallClock(msn)) / 1000;
        if (seconds !== undefined) seconds += duration;
        else if (into < duration && !block.isGap(msn)) seconds = duration - Math.max(0, into);
      }
    }
    return seconds;
  }

  /** Discontinuities before a listed segment (EXT-X-DISCONTINUITY-SEQUENCE). */
  discontinuitySequence(msn: number): number {
    return this.#blockOf(msn).discontinuitySequence(msn);
  }

  /** Discontinuities before a listed segment, and its own. */
  discontinuitiesTo(msn: number): number {
    const block = this.#blockOf(msn);
    return block.discontinuitySequence(msn) + (block.isDiscontinuity(msn) ? 1 : 0);
  }

  /** File names of the initializations of the listed segments. */
  get inits(): ReadonlySet<string> {
    return new Set(this.#blocks.flatMap(({ init }) => init ?? []));
  }

  /** File name of the initialization of a listed segment. */
  init(msn: number): string | undefined {
    return this.#blockOf(msn).init;
  }

  /** Playlist lines of the keys of a listed segment; '' for one in clear. */
  keys(msn: number): string {
    return this.#blockOf(msn).keys;
  }

  /** Lines of the listed segments from one number up to another, the higher excluded. The first one names its initialization. */
  pieces(from: number, to: number): TextPiece[] {
    return this.#lines(from, to, (block, start, end, before) => block.pieces(start, end, before));
  }

  /** Lines of the first frames of all segments, in byte ranges of their media. Those without one are gaps. */
  iFrames(): TextPiece[] {
    return this.#lines(this.#first, this.#next, (block, start, end, before) => block.iFrames(start, end, before));
  }

  #lines(
    from: number,
    to: number,
    of: (block: PastBlock, start: number, end: number, before: PastBlock | undefined) => readonly TextPiece[],
  ): TextPiece[] {
    let before: PastBlock | undefined;
    return this.#blocks.flatMap((block) => {
      const [start, end] = [Math.max(from, this.#first, block.first), Math.min(to, block.next)];
      if (start >= end) return [];
      const lines = of(block, start, end, before);
      before = block;
      return lines;
    });
  }

  /** A listed segment. @param name file name of its media */
  segment(msn: number, name: string): PastSegment {
    return this.#blockOf(msn).segment(msn, name);
  }

  #blockOf(msn: number): PastBlock {
    return this.#blocks.findLast(({ first }) => first <= msn) as PastBlock;
  }

  #append(segment: PastSegment): void {
    this.#appendTo(this.#blocks, segment);
    this.#next++;
    this.#seconds += segment.duration;
    this.#note(segment);
  }

  #appendTo(blocks: PastBlock[], segment: PastSegment): void {
    let block = blocks.at(-1);
    if (block?.takes(segment) !== true) blocks.push((block = new PastBlock(segment.msn, segment.init, this.#query)));
    block.append(segment);
  }

  #note({ msn, breaks, duration, keyFrame }: PastSegment): void {
    const lines = breaks.replaceAll(NO_RANGE, '');
    if (lines !== '') this.#ranges.push({ msn, lines });
    this.#hasIFrames ||= keyFrame !== undefined;
    this.#longest = Math.max(this.#longest, duration);
  }

  /** The first segment of another packager follows a discontinuity that only its number shows. */
  #placed(segment: PastSegment): PastSegment {
    const { discontinuity, discontinuitySequence } = segment;
    const isFirst = !this.empty && !discontinuity && discontinuitySequence > this.discontinuitiesTo(this.#next - 1);
    return isFirst ? { ...segment, discontinuity: true, discontinuitySequence: discontinuitySequence - 1 } : segment;
  }

  /**
   * The first of the segments that are missing before one that came: at the time that it has elsewhere, or else as long as the last one,
   * or what time there is for it.
   */
  #missing({ name, wallClock }: Pick<PastSegment, 'name' | 'wallClock'>): PastSegment {
    const [msn, last] = [this.#next, this.#next - 1];
    const block = this.#blockOf(last);
    const before = this.discontinuitiesTo(last);
    const times = this.#elsewhere(msn) ?? {
      duration: block.duration(last),
      wallClock: Math.min(this.end(last), wallClock),
      discontinuity: false,
      discontinuitySequence: before,
    };
    const gap = {
      name: nameOf(numberedName(name)?.shape ?? name, msn),
      msn,
      ...times,
      gap: true,
      breaks: '',
      ...(block.init !== undefined && { init: { name: block.init, ...(block.keys !== '' && { keys: block.keys }) } }),
    };
    return numbered(gap, before);
  }

  /** Whether a listed segment is at about the time of another one. */
  #isTimely(segment: PastSegment): boolean {
    const times = this.times(segment.msn);
    return times !== undefined && isTimely(segment, times);
  }
}

/** Whether a segment is at about the time of another one of its number: audio is cut at its own frames. */
function isTimely(segment: SegmentTimes, times: SegmentTimes): boolean {
  const apart = Math.abs(segment.wallClock - times.wallClock) / 1000;
  const number = ({ discontinuity, discontinuitySequence }: SegmentTimes): number =>
    discontinuitySequence + (discontinuity ? 1 : 0);
  return apart <= APART * Math.max(segment.duration, times.duration) && number(segment) === number(times);
}

/** A segment with the number of discontinuities before it; those after gaps may have a discontinuity that the gaps hid. */
function numbered(segment: PastSegment, before: number | undefined): PastSegment {
  const { discontinuity, discontinuitySequence } = segment;
  if (before === undefined || discontinuitySequence === before) return segment;
  if (discontinuitySequence < before) return { ...segment, discontinuity: false, discontinuitySequence: before };
  if (discontinuity) return segment;
  return { ...segment, discontinuity: true, discontinuitySequence: discontinuitySequence - 1 };
}

/** File name of another segment of the same media playlist. */
function shapedAs([some]: readonly PastSegment[], msn: number): string {
  const { name = '' } = some ?? {};
  return nameOf(numberedName(name)?.shape ?? name, msn);
}
