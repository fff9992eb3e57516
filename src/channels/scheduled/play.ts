import type { Track } from '../../core/track.ts';
import { unitLength, type ItemSource, type ItemUnit } from './item-source.ts';
import type { Planned } from './plan.ts';

/** An item that begins later than this is joined where it should be by now. */
export const LATE_MS = 1000;
/** What begins up to so much before the end of what was written is decoded after it all the same. */
const OVERLAP_MS = 100;
/** Times of frames are rounded. */
const ROUNDING_MS = 1;
/** How long the next key frame of an item is waited for while something else plays. */
const KEY_WITHIN_MS = 10_000;
/** Less than this is no failure, whatever the channel tolerates: files end between two frames. */
const TOLERATED_MS = 200;
/** A source has so long to begin, besides what the channel tolerates. */
const OPENING_MS = 5000;
/** What has nothing for so long may fail. */
const TROUBLED_MS = 100;
/** So does a file of which less than this is read ahead, after more was. */
const LOW_MS = 500;
const AHEAD_MS = 1000;

export interface PlayOptions {
  readonly planned: Planned;
  readonly isFallback: boolean;
  /** Monotonic milliseconds, now and at the time when the item is to begin. */
  readonly now: number;
  readonly begins: number;
  /** The item begins with its key frame where the stream is, however late that is. */
  readonly isLoose: boolean;
  readonly toleranceMs: number;
  /** @param position milliseconds of the item */
  readonly open: (position: number) => ItemSource;
}

/** Up to where the stream was written, in monotonic milliseconds: when all of it is over, and when its last frame of video is shown. */
export interface Written {
  readonly end: number;
  readonly lastShown: number;
}

/** One item from its opening to its end: where in the stream it is, and what of it still belongs there. Times as PlayOptions. */
export class Play {
  /** Its end may change. */
  planned: Planned;
  readonly isFallback: boolean;
  readonly source: ItemSource;
  /** It is joined in its middle: where its key frames are is known only when it is read. */
  readonly isJoined: boolean;
  readonly #options: PlayOptions;
  readonly #toleranceMs: number;
  #begins: number;
  /** Where the time of the item is 0. */
  #offset: number | undefined;
  /** When what it begins with is shown. */
  #shownFrom: number | undefined;
  #isOnAir = false;
  /** Video of it has been read. */
  #hasVideo = false;
  /** When the key frame that it begins with is due. */
  #joinsAt: number | undefined;
  /** Tracks of which the rest is behind the end. */
  readonly #cut = new Set<number>();
  #cutAt = Infinity;
  #starvedMs = 0;
  #wasAhead = false;
  #end = -Infinity;

  constructor(options: PlayOptions) {
    const { planned, isFallback, now, begins, open } = options;
    this.#options = options;
    this.#begins = begins;
    this.#toleranceMs = Math.max(TOLERATED_MS, options.toleranceMs);
    this.planned = planned;
    this.isFallback = isFallback;
    this.isJoined = now - begins >= LATE_MS;
    this.source = open(planned.item.start + (this.isJoined ? now - begins : 0));
  }

  /** How much of it is over, of what was to be played of it. */
  position(now: number): number {
    const { start } = this.planned.item;
    return Math.max(0, Math.round(now - (this.#offset ?? this.#begins - start) - start));
  }

  /** When it is to go on the air, where it is joined and that is known. */
  get joinsAt(): number | undefined {
    return this.#joinsAt;
  }

  /** When what it begins with is shown, where its place is known: what plays before it ends there. */
  get shownFrom(): number | undefined {
    return this.#shownFrom;
  }

  get offset(): number {
    return this.#offset ?? 0;
  }

  /** Up to where it was written. */
  get end(): number {
    return this.#end;
  }

  get tracks(): Track[] {
    return Array.from(this.source.queue.lanes(), ([unit]) => (unit as ItemUnit).track);
  }

  /** Why it cannot go on the air any more; undefined while it may. */
  objection(now: number): string | undefined {
    const { state, failure, queue } = this.source;
    if (state === 'ended' && (failure !== undefined || queue.next === undefined))
      return failure ?? 'there is no media at this position';
    const isLate = now > Math.max(this.#options.now + OPENING_MS, this.#begins + this.#toleranceMs);
    return state === 'opening' && isLate ? 'it did not begin in time' : undefined;
  }

  /** It is to begin at another time than it was opened for. Not for what is joined, or on the air. */
  move(planned: Planned, begins: number): void {
    this.planned = planned;
    this.#begins = begins;
  }

  /** It has waited for a key frame at its place for too long. */
  isStuck(now: number): boolean {
    const { now: openedAt, isLoose } = this.#options;
    return this.isJoined && !isLoose && this.source.state !== 'opening' && now - openedAt > KEY_WITHIN_MS;
  }

  /**
   * Finds its place in the stream.
   * @param follows whether something else plays, which it must not overlap
   * @returns when it is to go on the air; undefined: not known yet
   */
  place(now: number, { end: floor, lastShown }: Written, follows: boolean): number | undefined {
    const { source } = this;
    const { next } = source.queue;
    if (source.state === 'opening' || next === undefined) return undefined;
    const { isLoose } = this.#options;
    const begins = this.#begins;
    const { start } = this.planned.item;
    const firstKey = this.#firstKey(-Infinity);
    // its video was dropped while something else played
    if (this.isJoined && this.#hasVideo && firstKey === undefined) return undefined;
    const first = firstKey ?? next;
    if (source.isLive) {
      // what waits grows older
      const key = this.#lastKey ?? first;
      const newest = source.queue.span + next.at;
      return Math.max(begins, this.#put(key, Math.max(now - newest, floor - key.shownAt)));
    }
    if (isLoose && this.isJoined) return this.#put(first, Math.max(now, floor) - first.shownAt);
    if (this.#joinsAt !== undefined) return this.#joinsAt;
    if (this.isJoined) {
      const exact = begins - start;
      if (!follows) return this.#put(first, Math.max(exact, floor - first.shownAt));
      const key = this.#firstKey(Math.max(now, floor - OVERLAP_MS, lastShown + ROUNDING_MS) - exact);
      // what is older than now will not be shown: the next key frame may be behind it
      if (key === undefined) this.#dropBefore(now - exact);
      this.#joinsAt = key && this.#put(key, exact);
      return this.#joinsAt;
    }
    // a file that cannot begin at its start begins with the key frame in front of it
    const base = first.track.type === 'video' ? Math.min(start, first.shownAt) : start;
    const offset = begins - base;
    const late = floor - (offset + base);
    return this.#put(first, late > OVERLAP_MS ? offset + late : offset, base);
  }

  /** It goes on the air. */
  start(): void {
    this.#isOnAir = true;
  }

  /**
   * The next unit that is due and not behind the end of the item.
   * @param ends of the item
   */
  take(now: number, ends: number): ItemUnit | undefined {
    for (;;) {
      const unit = this.source.queue.next;
      if (unit === undefined || this.offset + unit.at > now) return undefined;
      this.source.queue.take();
      this.#starvedMs = 0;
      if (this.#isBehind(unit, ends)) continue;
      this.#end = Math.max(this.#end, this.offset + unit.shownAt + unitLength(unit));
      return unit;
    }
  }

  /** When its next unit is due. */
  get due(): number | undefined {
    const { next } = this.source.queue;
    return next && this.offset + next.at;
  }

  /** Whether nothing of it is to come before its end. */
  isSpent(ends: number): boolean {
    const { state, queue } = this.source;
    const heads = Array.from(queue.lanes(), ([unit]) => unit as ItemUnit);
    if (heads.length === 0) return state === 'ended';
    return heads.every((unit) => this.#isBehind(unit, ends));
  }

  /** Milliseconds of the file, where that was read to its end; undefined otherwise. */
  get length(): number | undefined {
    const { state, failure, isLive, queue } = this.source;
    if (isLive || state !== 'ended' || failure !== undefined) return undefined;
    const length = Math.max(this.#end - this.offset, ...Array.from(queue.lanes(), endOf));
    return length > 0 ? length : undefined;
  }

  /** Whether it may fail soon. */
  isTroubled(ends: number): boolean {
    const { state, failure, isLive, queue } = this.source;
    const { next, span } = queue;
    if (span >= AHEAD_MS) this.#wasAhead = true;
    if (state !== 'ended') {
      if (this.#cut.size > 0) return false;
      return this.#starvedMs >= TROUBLED_MS || (!isLive && this.#wasAhead && span < LOW_MS);
    }
    const last = next === undefined ? this.#end : this.offset + next.at + span;
    return failure !== undefined || ends - last > this.#toleranceMs;
  }

  /** For how many milliseconds nothing may come of it until it has to be looked at. */
  get checkAfterMs(): number {
    const limit = this.#starvedMs < TROUBLED_MS ? TROUBLED_MS : this.#toleranceMs;
    return Math.max(0, limit - this.#starvedMs);
  }

  /** Why it cannot go on; undefined while it can. @param passedMs since this was asked last, without pauses of the process */
  fault(passedMs: number, ends: number): string | undefined {
    const { state, failure, queue } = this.source;
    const toleranceMs = this.#toleranceMs;
    if (ends - this.#cutAt > toleranceMs) return 'it was ended for another item, which does not play';
    if (queue.next !== undefined) return undefined;
    if (state === 'ended') {
      if (failure !== undefined) return failure;
      return ends - this.#end > toleranceMs ? 'it ended too early' : undefined;
    }
    if (this.#cut.size > 0) return undefined;
    this.#starvedMs += passedMs;
    return this.#starvedMs >= toleranceMs ? `no media for ${toleranceMs} ms` : undefined;
  }

  close(): void {
    this.source.close();
  }

  /** @returns when the first unit is due */
  #put(first: ItemUnit, offset: number, from = first.shownAt): number {
    if (this.#isOnAir) return this.due ?? 0;
    this.#offset = offset;
    this.#shownFrom = offset + from;
    const { queue } = this.source;
    if (first.track.type === 'video' && from === first.shownAt) queue.beginWith(first);
    queue.dropAudio(from);
    this.source.taken();
    return this.due ?? offset + from;
  }

  #firstKey(from: number): ItemUnit | undefined {
    return this.#mainLane?.find(({ key, shownAt }) => key && shownAt >= from);
  }

  get #lastKey(): ItemUnit | undefined {
    return this.#mainLane?.findLast(({ key }) => key);
  }

  /** What waits of the video, or where the item has none, of audio: what is left of an item's audio alone is not joined. */
  get #mainLane(): readonly ItemUnit[] | undefined {
    const lanes = [...this.source.queue.lanes()];
    const lane = (type: string) => lanes.find(([unit]) => unit?.track.type === type);
    const video = lane('video');
    this.#hasVideo ||= video !== undefined;
    return this.#hasVideo ? video : lane('audio');
  }

  #dropBefore(time: number): void {
    const { queue } = this.source;
    while (queue.next !== undefined && queue.next.shownAt < time) queue.take();
    this.source.taken();
  }

  #isBehind(unit: ItemUnit, ends: number): boolean {
    const { id, type } = unit.track;
    if (this.#cut.has(id)) return true;
    const shown = this.offset + unit.shownAt;
    // audio is cut where that leaves the smallest gap or overlap; nothing decodes without the frame that is left out
    const isBehind = type === 'audio' ? shown + unitLength(unit) / 2 > ends : shown >= ends - ROUNDING_MS;
    if (!isBehind) return false;
    this.#cut.add(id);
    this.#cutAt = Math.min(this.#cutAt, ends);
    return true;
  }
}

/** When what waits of a track is over; the last frame of video is shown as long as the one before. */
function endOf(units: readonly ItemUnit[]): number {
  const shown = units.map((unit) => unit.shownAt + unitLength(unit)).sort((one, other) => other - one);
  const [last = -Infinity, before = last] = shown;
  return units[0]?.track.type === 'video' ? last + (last - before) : last;
}
