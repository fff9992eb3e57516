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
/** By so much a packet may come late before all others wait for it. */
const LATE_SECONDS = 0.5;
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
 * Passes packets on in the order of their times and at their pace, which arrive a segment at a time, those of a kind maybe in a playlist of
 * its own. The first one is passed on at once. When one comes late, the pace begins anew with it: the others wait, unless it is too late.
 */
export class Pacer implements TrackSink {
  readonly #options: PacerOptions;
  #items: Item[] = [];
  /** Items that were passed on, at the front. */
  #passed = 0;
  readonly #waiting: Readonly<Record<Track['type'], Waiting>> = {
    video: waiting(),
    audio: waiting(),
    data: waiting(),
    subtitle: waiting(),
    image: waiting(),
  };
  /** Seconds of media less seconds of the clock. */
  #offset: number | undefined;
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
    const waits = this.#waiting[packet.track.type];
    if (this.#offset === undefined || this.#isOutOfPace(at)) {
      this.#offset = at - performance.now() / 1000;
      if (this.#isEmpty) for (const kind of Object.values(this.#waiting)) kind.latest = -Infinity;
    }
    waits.latest = Math.max(waits.latest, at);
    waits.bytes += packet.data.length;
    waits.packets++;
    // tracks may follow each other by whole fragments
    let place = this.#items.length;
    while (place > this.#passed && isBehind(this.#items[place - 1], at)) place--;
    this.#add({ packet, at }, place);
  }

  /** Waits until more packets are wanted. @param kind those that come from the same playlist; undefined for all */
  async room(kind?: Track['type']): Promise<void> {
    const kinds = kind === undefined ? Object.values(this.#waiting) : [this.#waiting[kind]];
    while (!this.#closed && kinds.some((one) => this.#isFull(one))) await this.#stepped.promise;
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

  #isFull(kind: Waiting): boolean {
    const isMuch = kind.bytes > MAX_BYTES || kind.packets > MAX_PACKETS;
    return isMuch || this.#secondsOf(kind) > this.#options.leadSeconds;
  }

  /** Whether the pace has to begin anew with a packet. */
  #isOutOfPace(at: number): boolean {
    const late = this.#now() - at;
    if (this.#isEmpty) return late > 0 || -late > MAX_AHEAD_SECONDS;
    return (late > LATE_SECONDS && late <= this.#options.leadSeconds) || -late > MAX_AHEAD_SECONDS;
  }

  get #isEmpty(): boolean {
    return this.#passed === this.#items.length;
  }

  /** Seconds of media that wait. */
  get #seconds(): number {
    return Math.max(...Object.values(this.#waiting).map((kind) => this.#secondsOf(kind)));
  }

  #secondsOf({ latest, packets }: Waiting): number {
    return packets === 0 ? 0 : Math.max(0, latest - this.#now());
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
        const waits = this.#waiting[item.packet.track.type];
        waits.bytes -= item.packet.data.length;
        waits.packets--;
        this.#options.sink.write(item.packet);
      } else this.#options.sink.setTracks(item.tracks);
    }
    if (!this.#isEmpty && this.#passed < MAX_PASSED) return;
    this.#items = this.#items.slice(this.#passed);
    this.#passed = 0;
  }
}

/** Packets of a kind that wait. */
interface Waiting {
  /** The furthest time, in seconds. */
  latest: number;
  bytes: number;
  packets: number;
}

function waiting(): Waiting {
  return { latest: -Infinity, bytes: 0, packets: 0 };
}

function isBehind(item: Item | undefined, at: number): boolean {
  return item !== undefined && 'packet' in item && item.at > at;
}
