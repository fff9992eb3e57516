import { EventEmitter } from 'node:events';
import type { Init, Part, Segment } from './segment.ts';

interface WindowEvents<Data> {
  part: [segment: Segment<Data>, part: Part<Data>];
  complete: [segment: Segment<Data>];
  /** A segment was removed: neither listed nor kept. */
  evicted: [segment: Segment<Data>];
  /** A segment began that is the first to need an initialization. */
  init: [init: Init];
}

/** Segments kept after they left the playlist, for late players. */
const GRACE_SEGMENTS = 1;
const MAX_BYTES = 256 * 1024 * 1024;
/** Limit of the playlist's length with short segments, as a factor of `segmentCount`. */
const MOST_SHORT = 4;

export interface WindowLimits {
  /** Complete segments in a playlist; more where they are short. */
  readonly segmentCount: number;
  /** Seconds of complete segments below which the playlist drops none. */
  readonly leastSeconds: () => number;
}

/** Segments of one track that players can request: complete ones and the growing one. */
export class Window<Data = Buffer> extends EventEmitter<WindowEvents<Data>> {
  readonly #limits: WindowLimits;
  readonly #maxBytes: number;
  readonly #complete: Segment<Data>[] = [];
  #open: Segment<Data> | undefined;
  #ending = false;
  #renews = false;
  #bytes = 0;
  #listedFrom = 0;
  /** Number of listed gaps before the first segment with media. */
  #leading = 0;
  #discontinuities = 0;

  constructor(limits: WindowLimits, maxBytes = MAX_BYTES) {
    super();
    // one for each label of subtitles
    this.setMaxListeners(0);
    this.#limits = limits;
    this.#maxBytes = maxBytes;
  }

  /** Complete segments of the playlist, oldest first. */
  get listed(): readonly Segment<Data>[] {
    return this.#complete.slice(this.#listedFrom);
  }

  /** Complete segments, listed or not, oldest first. */
  get kept(): readonly Segment<Data>[] {
    return this.#complete;
  }

  /** The growing segment; undefined before the first. */
  get open(): Segment<Data> | undefined {
    return this.#open;
  }

  /** Number of discontinuities before the listed segments (EXT-X-DISCONTINUITY-SEQUENCE). */
  get discontinuitySequence(): number {
    return this.#discontinuities;
  }

  /** Number of discontinuities of the stream before a kept segment, its own not counted. */
  discontinuitiesBefore(segment: Segment<Data>): number {
    const index = this.#complete.indexOf(segment);
    return this.#discontinuities + discontinuitiesBetween(this.#complete, this.#listedFrom, index);
  }

  /** Number of listed gaps before the first segment with media. */
  get leading(): number {
    return this.#leading;
  }

  /** Declares the first segments to be gaps, listed until segments with media fill the playlist. */
  lead(count: number): void {
    this.#leading = count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Position of the newest part; undefined before the first. */
  get last(): { readonly msn: number; readonly part: number } | undefined {
    const open = this.#open;
    if (open !== undefined && open.parts.length > 0) return { msn: open.msn, part: open.parts.length - 1 };
    const complete = this.#complete.at(-1);
    return complete === undefined ? undefined : { msn: complete.msn, part: Math.max(0, complete.parts.length - 1) };
  }

  /**
   * Expected position of the next part; undefined before the first segment, and where that part needs another initialization: players
   * that request it early would take the present one for it (Shaka Player 5.2).
   */
  get next(): { readonly msn: number; readonly part: number } | undefined {
    const open = this.#open;
    if (this.#renews) return undefined;
    if (open !== undefined)
      return this.#ending ? { msn: open.msn + 1, part: 0 } : { msn: open.msn, part: open.parts.length };
    const complete = this.#complete.at(-1);
    return complete && { msn: complete.msn + 1, part: 0 };
  }

  /** Whether the growing segment has probably had its last part, so that `next` is in the following one. */
  get ending(): boolean {
    return this.#ending;
  }

  /** @param discontinuities number that other tracks have had before the first segment of this one */
  start(segment: Segment<Data>, discontinuities?: number): void {
    if (discontinuities !== undefined) this.#discontinuities = discontinuities;
    this.#open = segment;
    this.#ending = false;
    this.#renews = false;
    if (this.#complete.at(-1)?.init !== segment.init) this.emit('init', segment.init);
  }

  /**
   * @param ending whether the part is probably the last of the segment
   * @param renews whether the next segment has another initialization
   */
  add(part: Part<Data>, ending = false, renews = false): void {
    const segment = this.#open as Segment<Data>;
    segment.add(part);
    this.#ending = ending;
    this.#renews = ending && renews;
    this.#bytes += part.bytes;
    this.emit('part', segment, part);
  }

  /** Completes the growing segment and drops the oldest ones. */
  complete(): void {
    const segment = this.#open;
    if (segment === undefined) return;
    segment.complete = true;
    this.#open = undefined;
    this.#renews = false;
    this.#complete.push(segment);
    while (this.#isTooLong) this.#unlist();
    while (this.#listedFrom > GRACE_SEGMENTS || (this.#bytes > this.#maxBytes && this.#complete.length > 1)) {
      this.#evict();
    }
    this.emit('complete', segment);
  }

  get #isTooLong(): boolean {
    return losesOldest(this.listed, this.#limits, this.#leading);
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

/**
 * Whether the oldest segment leaves a playlist.
 * @param listed complete segments, oldest first
 * @param leading how many of them do not count
 */
export function losesOldest(
  listed: readonly { readonly duration: number }[],
  { segmentCount, leastSeconds }: WindowLimits,
  leading = 0,
): boolean {
  const count = listed.length - leading;
  if (count <= segmentCount) return false;
  if (count > segmentCount * MOST_SHORT) return true;
  return listed.slice(1).reduce((sum, { duration }) => sum + duration, 0) >= leastSeconds();
}

/** Number of discontinuities from one index up to another, the higher excluded; negative if `to` is the lower. */
export function discontinuitiesBetween(
  segments: readonly { readonly discontinuity: boolean }[],
  from: number,
  to: number,
): number {
  const between = segments.slice(Math.min(from, to), Math.max(from, to));
  return Math.sign(to - from) * between.filter(({ discontinuity }) => discontinuity).length;
}
