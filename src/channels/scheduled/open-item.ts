import type { Track } from '../../core/track.ts';
import { unitLength, type ItemSource, type ItemUnit } from './item-source.ts';
import type { Planned } from './plan.ts';

/** An item that begins later than this is joined at its present position. */
export const LATE_MS = 1000;
/** An item that begins at most this much before the end of what was written is still decoded after it. */
const OVERLAP_MS = 100;
const ROUNDING_MS = 1;
/** Longest wait for the next key frame of an item while something else plays. */
const KEY_WITHIN_MS = 10_000;
/** Shorter gaps are no failure, whatever the channel tolerates: files end between two frames. */
const TOLERATED_MS = 200;
/** Time that a source has to begin, besides what the channel tolerates. */
const OPENING_MS = 5000;
/** A source without units for this long may fail. */
const TROUBLED_MS = 100;
/** A file that has read ahead less than this, after more, may fail. */
const LOW_MS = 500;
const AHEAD_MS = 1000;

export interface OpenItemOptions {
  readonly planned: Planned;
  readonly isFallback: boolean;
  /** Monotonic milliseconds: now, and the begin of the item. */
  readonly now: number;
  readonly begins: number;
  /** Whether the item may begin late with its key frame where the stream is. */
  readonly isLoose: boolean;
  readonly toleranceMs: number;
  /** @param position milliseconds of the item */
  readonly open: (position: number) => ItemSource;
}

/**
 * End of what was written, in monotonic milliseconds: of all tracks, and the time when the last video frame is shown.
 */
export interface Written {
  readonly end: number;
  readonly lastShown: number;
}

/**
 * One item from its opening to its end: its place in the stream, and the units that still belong there. Times as in
 * OpenItemOptions.
 */
export class OpenItem {
  planned: Planned;
  readonly isFallback: boolean;
  readonly source: ItemSource;
  /** Joined in its middle: the positions of its key frames are known only when they are read. */
  readonly isJoined: boolean;
  readonly #options: OpenItemOptions;
  readonly #toleranceMs: number;
  #begins: number;
  /** Time 0 of the item. */
  #offset: number | undefined;
  /** Presentation time of its start. */
  #shownFrom: number | undefined;
  #isOnAir = false;
  #hasVideo = false;
  /** Due time of the key frame that it begins with. */
  #joinsAt: number | undefined;
  /** Tracks whose remaining units are after the end. */
  readonly #cut = new Set<number>();
  #cutAt = Infinity;
  #starvedMs = 0;
  #wasAhead = false;
  #end = -Infinity;

  constructor(options: OpenItemOptions) {
    const { planned, isFallback, now, begins, open } = options;
    this.#options = options;
    this.#begins = begins;
    this.#toleranceMs = Math.max(TOLERATED_MS, options.toleranceMs);
    this.planned = planned;
    this.isFallback = isFallback;
    this.isJoined = now - begins >= LATE_MS;
    this.source = open(planned.item.start + (this.isJoined ? now - begins : 0));
  }

  /** Position in the item, within the part to play. */
  position(now: number): number {
    const { start } = this.planned.item;
    return Math.max(0, Math.round(now - (this.#offset ?? this.#begins - start) - start));
  }

  /** Time to go on the air, where it is joined and that time is known. */
  get joinsAt(): number | undefined {
    return this.#joinsAt;
  }

  /** Presentation time of its start, once placed: the item before it ends there. */
  get shownFrom(): number | undefined {
    return this.#shownFrom;
  }

  get offset(): number {
    return this.#offset ?? 0;
  }

  get end(): number {
    return this.#end;
  }

  get tracks(): Track[] {
    return Array.from(this.source.queue.lanes(), ([unit]) => (unit as ItemUnit).track);
  }

  /** Reason why it can no longer go on the air; undefined while it can. */
  objection(now: number): string | undefined {
    const { state, failure, queue } = this.source;
    if (state === 'ended' && (failure !== undefined || queue.next === undefined))
      return failure ?? 'there is no media at this position';
    const isLate = now > Math.max(this.#options.now + OPENING_MS, this.#begins + this.#toleranceMs);
    return state === 'opening' && isLate ? 'it did not begin in time' : undefined;
  }

  /** Moves its begin. Not for an item that is joined or on the air. */
  move(planned: Planned, begins: number): void {
    this.planned = planned;
    this.#begins = begins;
  }

  /** Whether it has waited too long for a key frame. */
  isStuck(now: number): boolean {
    const { now: openedAt, isLoose } = this.#options;
    return this.isJoined && !isLoose && this.source.state !== 'opening' && now - openedAt > KEY_WITHIN_MS;
  }

  /**
   * Finds its place in the stream.
   * @param follows whether another item plays, which it must not overlap
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
    // its video was dropped while another item played
    if (this.isJoined && this.#hasVideo && firstKey === undefined) return undefined;
    const first = firstKey ?? next;
    if (source.isLive) {
      // waiting units age
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
      // units older than now will not be shown, and the next key frame may follow them
      if (key === undefined) this.#dropBefore(now - exact);
      this.#joinsAt = key && this.#put(key, exact);
      return this.#joinsAt;
    }
    // a file that cannot begin at its start begins with the key frame before it
    const base = first.track.type === 'video' ? Math.min(start, first.shownAt) : start;
    const offset = begins - base;
    const late = floor - (offset + base);
    return this.#put(first, late > OVERLAP_MS ? offset + late : offset, base);
  }

  start(): void {
    this.#isOnAir = true;
  }

  /** Takes the next unit that is due and before the end of the item. @param ends of the item */
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

  /** Due time of its next unit. */
  get due(): number | undefined {
    const { next } = this.source.queue;
    return next && this.offset + next.at;
  }

  /** Whether no unit is to come before its end. */
  isSpent(ends: number): boolean {
    const { state, queue } = this.source;
    const heads = Array.from(queue.lanes(), ([unit]) => unit as ItemUnit);
    if (heads.length === 0) return state === 'ended';
    return heads.every((unit) => this.#isBehind(unit, ends));
  }

  /** Milliseconds of a file that was read to its end; undefined otherwise. */
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

  /** Milliseconds for which it may stay without units before it has to be checked. */
  get checkAfterMs(): number {
    const limit = this.#starvedMs < TROUBLED_MS ? TROUBLED_MS : this.#toleranceMs;
    return Math.max(0, limit - this.#starvedMs);
  }

  /**
   * Reason why it cannot continue; undefined while it can. @param passedMs since the last call, without pauses of the
   * process
   */
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

  /** @returns due time of the first unit */
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

  /**
   * Waiting video units, or audio of an item without video: the remaining audio of an item with video is not joined.
   */
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
    // audio is cut where the gap or overlap is smallest; what follows does not decode without the frame that is left out
    const isBehind = type === 'audio' ? shown + unitLength(unit) / 2 > ends : shown >= ends - ROUNDING_MS;
    if (!isBehind) return false;
    this.#cut.add(id);
    this.#cutAt = Math.min(this.#cutAt, ends);
    return true;
  }
}

/** End of the waiting units of a track; the last video frame is shown as long as the one before. */
function endOf(units: readonly ItemUnit[]): number {
  const shown = units.map((unit) => unit.shownAt + unitLength(unit)).sort((one, other) => other - one);
  const [last = -Infinity, before = last] = shown;
  return units[0]?.track.type === 'video' ? last + (last - before) : last;
}
