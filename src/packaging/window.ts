import { EventEmitter } from 'node:events';
import type { Init, Part, Segment } from './segment.ts';

interface WindowEvents<Data> {
  part: [segment: Segment<Data>, part: Part<Data>];
  complete: [segment: Segment<Data>];
  /** Neither listed nor kept any more. */
  evicted: [segment: Segment<Data>];
  /** A segment begins that is the first to need it. */
  init: [init: Init];
}

/** A segment stays one segment's time after it left the playlist, for readers that are late. */
const GRACE_SEGMENTS = 1;
const MAX_BYTES = 256 * 1024 * 1024;
/** Times the number of segments that a playlist has where they are not short. */
const MOST_SHORT = 4;

export interface WindowLimits {
  /** Complete segments in a playlist; more where they are short. */
  readonly segmentCount: number;
  /** Seconds that the complete segments of a playlist last together at least, once they have. */
  readonly leastSeconds: () => number;
}

/** The segments of one track that players can ask for: a number of complete ones and the growing one. */
export class Window<Data = Buffer> extends EventEmitter<WindowEvents<Data>> {
  readonly #limits: WindowLimits;
  readonly #maxBytes: number;
  readonly #complete: Segment<Data>[] = [];
  #open: Segment<Data> | undefined;
  /** The newest part is likely to be the last of its segment. */
  #ending = false;
  #bytes = 0;
  #listedFrom = 0;
  /** Of the listed ones, how many lead to the first that has media. */
  #leading = 0;
  #discontinuities = 0;

  constructor(limits: WindowLimits, maxBytes = MAX_BYTES) {
    super();
    this.#limits = limits;
    this.#maxBytes = maxBytes;
  }

  /** Complete segments of the playlist, oldest first. */
  get listed(): readonly Segment<Data>[] {
    return this.#complete.slice(this.#listedFrom);
  }

  /** Complete segments that are still there, listed or not, oldest first. */
  get kept(): readonly Segment<Data>[] {
    return this.#complete;
  }

  /** The growing segment; undefined before the first. */
  get open(): Segment<Data> | undefined {
    return this.#open;
  }

  /** Discontinuities in front of the playlist's segments that stand in it no more, or never did (EXT-X-DISCONTINUITY-SEQUENCE). */
  get discontinuitySequence(): number {
    return this.#discontinuities;
  }

  /** Discontinuities of the stream before a segment that is kept, its own not counted. */
  discontinuitiesBefore(segment: Segment<Data>): number {
    const index = this.#complete.indexOf(segment);
    return this.#discontinuities + discontinuitiesBetween(this.#complete, this.#listedFrom, index);
  }

  /** The first segments, so many, are gaps that lead players to what comes: they are listed until that fills the playlist. */
  lead(count: number): void {
    this.#leading = count;
  }

  /** Bytes of media held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The last number and part index there is; undefined before the first part. */
  get last(): { readonly msn: number; readonly part: number } | undefined {
    const open = this.#open;
    if (open !== undefined && open.parts.length > 0) return { msn: open.msn, part: open.parts.length - 1 };
    const complete = this.#complete.at(-1);
    return complete === undefined ? undefined : { msn: complete.msn, part: Math.max(0, complete.parts.length - 1) };
  }

  /** The part that is likely to come next; undefined before the first segment. */
  get next(): { readonly msn: number; readonly part: number } | undefined {
    const open = this.#open;
    if (open !== undefined)
      return this.#ending ? { msn: open.msn + 1, part: 0 } : { msn: open.msn, part: open.parts.length };
    const complete = this.#complete.at(-1);
    return complete && { msn: complete.msn + 1, part: 0 };
  }

  /** Whether that is the first of the next segment, though the growing one has not ended. */
  get ending(): boolean {
    return this.#ending;
  }

  /** @param discontinuities that other tracks of the stream have had before the first segment of this one */
  start(segment: Segment<Data>, discontinuities?: number): void {
    if (discontinuities !== undefined) this.#discontinuities = discontinuities;
    this.#open = segment;
    this.#ending = false;
    if (this.#complete.at(-1)?.init !== segment.init) this.emit('init', segment.init);
  }

  /** @param ending it is likely to be the last of the segment */
  add(part: Part<Data>, ending = false): void {
    const segment = this.#open as Segment<Data>;
    segment.add(part);
    this.#ending = ending;
    this.#bytes += part.bytes;
    this.emit('part', segment, part);
  }

  /** Ends the growing segment; the oldest ones leave. */
  complete(): void {
    const segment = this.#open;
    if (segment === undefined) return;
    segment.complete = true;
    this.#open = undefined;
    this.#complete.push(segment);
    while (this.#isTooLong) this.#unlist();
    while (this.#listedFrom > GRACE_SEGMENTS || (this.#bytes > this.#maxBytes && this.#complete.length > 1)) {
      this.#evict();
    }
    this.emit('complete', segment);
  }

  /** Whether the playlist can do without its first segment. */
  get #isTooLong(): boolean {
    const { segmentCount, leastSeconds } = this.#limits;
    const count = this.#complete.length - this.#listedFrom - this.#leading;
    if (count <= segmentCount) return false;
    if (count > segmentCount * MOST_SHORT) return true;
    const rest = this.#complete.slice(this.#listedFrom + 1);
    return rest.reduce((sum, { duration }) => sum + duration, 0) >= leastSeconds();
  }

  #unlist(): void {
    this.#leading = Math.max(0, this.#leading - 1);
    const gone = this.#complete[this.#listedFrom++] as Segment<Data>;
    if (gone.discontinuity) this.#discontinuities++;
  }

  #evict(): void {
    if (this.#listedFrom === 0) this.#unlist();
    const gone = this.#complete.shift() as Segment<Data>;
    this.#listedFrom--;
    this.#bytes -= gone.bytes;
    this.emit('evicted', gone);
  }
}

/** Discontinuities of the segments from one place to another, itself not counted; negative when that is in front of it. */
export function discontinuitiesBetween(
  segments: readonly { readonly discontinuity: boolean }[],
  from: number,
  to: number,
): number {
  const between = segments.slice(Math.min(from, to), Math.max(from, to));
  return Math.sign(to - from) * between.filter(({ discontinuity }) => discontinuity).length;
}
