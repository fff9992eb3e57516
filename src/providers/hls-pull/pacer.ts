import type { Packet } from '../../core/packet.ts';
import { toSeconds } from '../../core/timebase.ts';
import type { Track } from '../../core/track.ts';
import type { TrackSink } from '../intake/track-writer.ts';

/** How often packets that are due are passed on, in milliseconds. */
const MIN_STEP_MS = 5;
const MAX_STEP_MS = 100;
/** Packets that lie further ahead than this are of other times, and are passed on at once. */
const MAX_AHEAD_SECONDS = 3600;
const MAX_BYTES = 64 * 1024 * 1024;
/** Packets that may wait, however small they are. */
const MAX_PACKETS = 100_000;
/** By so much the pace is faster while too much waits: the clock of the source is faster than that of this machine. */
const HURRY = 0.02;
/** Passed items that are kept in the array. */
const MAX_PASSED = 1000;

type Item = { readonly packet: Packet; readonly at: number } | { readonly tracks: readonly Track[] };

export interface PacerOptions {
  readonly sink: TrackSink;
  /** Seconds of media that may wait. */
  readonly leadSeconds: number;
  /** Whether the source is live, so that more than that means a faster clock. */
  readonly isLive: boolean;
}

/**
 * Passes packets on in the order of their times and at their pace, which arrive a segment at a time. The first one is passed on at once. When
 * all were passed on and the next one comes late, the pace begins anew with it.
 */
export class Pacer implements TrackSink {
  readonly #options: PacerOptions;
  #items: Item[] = [];
  /** Items that were passed on, at the front. */
  #passed = 0;
  #bytes = 0;
  /** Seconds of media less seconds of the clock. */
  #offset: number | undefined;
  #latest = 0;
  #steppedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #stepped = Promise.withResolvers<void>();
  #closed = false;

  constructor(options: PacerOptions) {
    this.#options = options;
  }

  setTracks(tracks: readonly Track[]): void {
    this.#add({ tracks }, this.#items.length);
  }

  write(packet: Packet): void {
    const at = toSeconds(packet.dts, packet.track.timebase);
    const isLate = this.#isEmpty && this.#offset !== undefined && at < this.#now();
    const isElsewhere = this.#offset !== undefined && at - this.#now() > MAX_AHEAD_SECONDS;
    if (this.#offset === undefined || isLate || isElsewhere) {
      this.#offset = at - performance.now() / 1000;
      this.#latest = at;
    }
    this.#latest = Math.max(this.#latest, at);
    this.#bytes += packet.data.length;
    // tracks may follow each other by whole fragments
    let place = this.#items.length;
    while (place > this.#passed && isBehind(this.#items[place - 1], at)) place--;
    this.#add({ packet, at }, place);
  }

  /** Waits until more packets are wanted. */
  async room(): Promise<void> {
    while (!this.#closed && this.#isFull) await this.#stepped.promise;
  }

  /** Waits until all packets were passed on. */
  async drained(): Promise<void> {
    while (!this.#closed && !this.#isEmpty) await this.#stepped.promise;
  }

  /** Nothing is passed on any more. Idempotent. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#items = [];
    this.#passed = 0;
    this.#stepped.resolve();
  }

  get #isFull(): boolean {
    const waiting = this.#items.length - this.#passed;
    return this.#seconds > this.#options.leadSeconds || this.#bytes > MAX_BYTES || waiting > MAX_PACKETS;
  }

  get #isEmpty(): boolean {
    return this.#passed === this.#items.length;
  }

  /** Seconds of media that wait. */
  get #seconds(): number {
    return this.#isEmpty ? 0 : Math.max(0, this.#latest - this.#now());
  }

  /** Time of the media that is due. */
  #now(): number {
    return performance.now() / 1000 + (this.#offset ?? 0);
  }

  #add(item: Item, place: number): void {
    if (this.#closed) return;
    this.#items.splice(place, 0, item);
    this.#timer ??= setTimeout(() => this.#step(), 0);
  }

  #step(): void {
    this.#timer = undefined;
    const clock = performance.now() / 1000;
    const isTooMuch = this.#options.isLive && this.#seconds > this.#options.leadSeconds;
    if (isTooMuch && this.#offset !== undefined) this.#offset += Math.min(1, clock - this.#steppedAt) * HURRY;
    this.#steppedAt = clock;
    this.#pass(this.#now());
    const next = this.#items[this.#passed];
    if (next !== undefined && !this.#closed) {
      const dueMs = 'packet' in next ? (next.at - this.#now()) * 1000 : 0;
      this.#timer = setTimeout(() => this.#step(), Math.min(MAX_STEP_MS, Math.max(MIN_STEP_MS, dueMs)));
    }
    this.#stepped.resolve();
    this.#stepped = Promise.withResolvers();
  }

  #pass(until: number): void {
    for (let item = this.#items[this.#passed]; item !== undefined; item = this.#items[this.#passed]) {
      if ('packet' in item && item.at > until) break;
      this.#passed++;
      if ('packet' in item) {
        this.#bytes -= item.packet.data.length;
        this.#options.sink.write(item.packet);
      } else this.#options.sink.setTracks(item.tracks);
    }
    if (!this.#isEmpty && this.#passed < MAX_PASSED) return;
    this.#items = this.#items.slice(this.#passed);
    this.#passed = 0;
  }
}

function isBehind(item: Item | undefined, at: number): boolean {
  return item !== undefined && 'packet' in item && item.at > at;
}
