import { AvOffset, type AvOffsetFigures } from './av-offset.ts';
import type { Packet } from './packet.ts';
import { toSeconds } from './timebase.ts';
import { isMedia } from './track.ts';

/** A packet may arrive this much earlier than the offset says before the offset follows, so that labels stay steady. */
const EARLIER_MS = 20;
/** When every packet arrives more than this too late, for this long, the offset follows at once. */
const LATE_MS = 300;
const LATE_FOR_MS = 1500;
/** When every packet arrives more than this too late in a whole window, the source's clock is slow, and the offset follows. */
const DRIFT_MS = 30;
const DRIFT_WINDOW_MS = 10_000;
/** The initial burst or slow start of a source is over when its packets have not arrived earlier for this time. */
const SETTLED_MS = 100;
/** That applies only while the stream is this young. */
const SETTLING_MS = 1000;
/** Steps of a track's decoding time beyond these are jumps, or pauses, and no frames that follow each other. */
const BACK_SECONDS = 1;
const FORWARD_SECONDS = 10;
/** Tracks of one timeline are no further apart. */
const APART_MS = 4000;
/** Longest reordering of frames. A timestamp beyond it is wrong. */
const MAX_REORDERING_SECONDS = 2;

/** Share of a difference that the jitter takes on with each packet (RFC 3550 section 6.4.1). */
const JITTER_SHARE = 1 / 16;

/** The position of a track. */
interface Place {
  /** Decoding time of its newest packet, in seconds. */
  last: number;
  /** The timeline that it is on. */
  epoch: number;
  /** Arrival of the newest packet, less its decoding time, in milliseconds. */
  transit: number;
  /** Mean difference between the transits of packets that follow each other, in milliseconds. */
  jitter: number;
}

/** The time, in seconds, of which a packet is: it cannot have been sent before. */
export function shownAt({ track, dts, pts }: Packet): number {
  const decoded = toSeconds(dts, track.timebase);
  const reordered = track.type === 'video' ? toSeconds(pts - dts, track.timebase) : 0;
  return reordered > 0 && reordered <= MAX_REORDERING_SECONDS ? decoded + reordered : decoded;
}

/**
 * Maps media time of an input stream to the wall clock time of its arrival, by the packets that were delayed the least.
 * A source that was held up and catches up does not change the mapping. One that stays late, or whose clock is slower than
 * this machine's, changes it after a while; one that is early, at once.
 */
export class ArrivalClock {
  /** Wall clock less media time, in milliseconds. */
  #offset = Infinity;
  /** Media time of the packet that arrived last, in seconds. */
  #newest: number | undefined;
  readonly #places = new Map<number, Place>();
  readonly #avOffset = new AvOffset();
  /** Changes when the timestamps of the source jump. */
  #epoch = 0;
  #startedAt = -Infinity;
  /** When the offset last became smaller. */
  #gainedAt = -Infinity;
  /** Since when every packet has been late, and the offset of the least late. */
  #lateSince: number | undefined;
  #leastLate = Infinity;
  /** Start of the window for drift, and the offset of the packet in it that was delayed least. */
  #windowStart = 0;
  #leastInWindow = Infinity;

  /** Media time of the packet that arrived last, in seconds; undefined before the first. */
  get newest(): number | undefined {
    return this.#newest;
  }

  /** Milliseconds since the epoch at a media time, in seconds; Infinity as long as nothing has arrived. */
  at(media: number): number {
    return this.#offset + media * 1000;
  }

  /** Milliseconds after which the start of the stream is likely to be over, so that its times will stay as they are. */
  settlesIn(now = Date.now()): number {
    if (now - this.#startedAt > SETTLING_MS) return 0;
    return Math.min(SETTLED_MS, Math.max(0, this.#gainedAt + SETTLED_MS - now));
  }

  /** How unevenly packets of a track arrive, as the interarrival jitter of RFC 3550 section 6.4.1, in milliseconds. */
  jitter(trackId: number): number {
    return this.#places.get(trackId)?.jitter ?? 0;
  }

  /** By how much audio is late against video; undefined while there is too little of them. @param now milliseconds since the epoch */
  avOffset(now = Date.now()): AvOffsetFigures | undefined {
    return this.#avOffset.figures(now);
  }

  /** Records the arrival of a packet. @param now milliseconds since the epoch */
  note(packet: Packet, now = Date.now()): void {
    const { track, dts } = packet;
    if (!isMedia(track)) return;
    const decoded = toSeconds(dts, track.timebase);
    const shown = shownAt(packet);
    this.#newest = shown;
    const offset = now - shown * 1000;
    if (!this.#isOnTimeline(track.id, decoded, offset, now)) return;
    this.#avOffset.note(track.type, track.id, offset, now);
    if (this.#startedAt === -Infinity) this.#startedAt = now;
    if (offset < this.#offset - EARLIER_MS) {
      this.#gainedAt = now;
      this.#set(offset, now);
    }
    this.#noteLateness(offset, now);
    this.#noteDrift(offset, now);
  }

  /** Whether a packet's time is of the timeline that the newest jump began. */
  #isOnTimeline(id: number, decoded: number, offset: number, now: number): boolean {
    const place = this.#places.get(id);
    const transit = now - decoded * 1000;
    if (place === undefined) {
      this.#places.set(id, { last: decoded, epoch: this.#epoch, transit, jitter: 0 });
      return true;
    }
    const step = decoded - place.last;
    const change = Math.abs(transit - place.transit);
    place.last = decoded;
    place.transit = transit;
    if (step > -BACK_SECONDS && step <= FORWARD_SECONDS) place.jitter += (change - place.jitter) * JITTER_SHARE;
    const isNear = Math.abs(offset - this.#offset) < APART_MS;
    if (step <= -BACK_SECONDS || (step > FORWARD_SECONDS && !isNear)) {
      if (place.epoch === this.#epoch) this.#jump();
      place.epoch = this.#epoch;
    } else if (isNear) {
      place.epoch = this.#epoch;
    }
    return place.epoch === this.#epoch;
  }

  #jump(): void {
    this.#epoch++;
    this.#offset = Infinity;
    this.#avOffset.restart();
  }

  #noteLateness(offset: number, now: number): void {
    if (offset <= this.#offset + LATE_MS) {
      this.#lateSince = undefined;
      this.#leastLate = Infinity;
      return;
    }
    this.#lateSince ??= now;
    if (offset < this.#leastLate) this.#leastLate = offset;
    if (now - this.#lateSince >= LATE_FOR_MS) this.#set(this.#leastLate, now);
  }

  #noteDrift(offset: number, now: number): void {
    if (offset < this.#leastInWindow) this.#leastInWindow = offset;
    if (now - this.#windowStart < DRIFT_WINDOW_MS) return;
    if (this.#leastInWindow > this.#offset + DRIFT_MS) this.#set(this.#leastInWindow, now);
    this.#windowStart = now;
    this.#leastInWindow = Infinity;
  }

  #set(offset: number, now: number): void {
    this.#offset = offset;
    this.#lateSince = undefined;
    this.#leastLate = Infinity;
    this.#windowStart = now;
    this.#leastInWindow = Infinity;
  }
}
