import type { Packet } from '../../core/packet.ts';
import type { Track } from '../../core/track.ts';
import type { TrackSink } from '../../providers/intake/track-writer.ts';

/** Limits of the buffer: each start point, and the packets after it. */
const KEPT_MS = 5000;
const MAX_BYTES = 32 * 1024 * 1024;
/** A longer GOP is dropped: the stream is then taken over at the next key frame. */
const LONGEST_MS = 15_000;
const ROUNDING_MS = 5;
/** Time to wait for a start point that is still to come: the clock of this node may be late. */
const AWAITED_MS = 2000;

/** Start point for taking over a stream: a key frame (without video any packet), and the packets after it. */
interface Place {
  /** Scheduled time, in milliseconds since the epoch. */
  readonly at: number;
  /** Arrival time, in milliseconds of the monotonic clock. */
  readonly came: number;
  readonly tracks: readonly Track[];
  /** Packets, and changed tracks from then on. */
  readonly content: (Packet | readonly Track[])[];
  bytes: number;
}

/**
 * Buffers the output of a channel that stands by, until its sink is known, and the first packet that the former owner
 * did not write.
 */
export class StandbySink implements TrackSink {
  /** Resolves when there is a start point. */
  readonly begun: Promise<void>;
  readonly #begin = Promise.withResolvers<void>();
  readonly #scheduledAt: (packet: Packet) => number;
  #places: Place[] = [];
  #bytes = 0;
  #tracks: readonly Track[] = [];
  #to: TrackSink | undefined;
  #isOpen = false;
  /** Scheduled time of the first packet to pass on. */
  #from: number | undefined;
  /** No key frame of video was passed on yet. */
  #waitsForKey = true;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param scheduledAt scheduled time of a packet that is being written, in milliseconds since the epoch, the same on
   * every node
   */
  constructor(scheduledAt: (packet: Packet) => number) {
    this.#scheduledAt = scheduledAt;
    this.begun = this.#begin.promise;
  }

  setTracks(tracks: readonly Track[]): void {
    this.#tracks = tracks;
    if (this.#isOpen) this.#to?.setTracks(tracks);
    else this.#places.at(-1)?.content.push(tracks);
  }

  write(packet: Packet): void {
    if (this.#isOpen) return this.#pass(packet);
    const isPlace = this.#hasVideo ? packet.key && packet.track.type === 'video' : packet.track.type === 'audio';
    if (isPlace) this.#addPlace(packet);
    const last = this.#places.at(-1);
    if (last === undefined) return;
    last.content.push(packet);
    last.bytes += packet.data.length;
    this.#bytes += packet.data.length;
    this.#trim();
    if (isPlace && this.#to !== undefined && this.#isThere) this.#open();
  }

  /**
   * Passes the buffer to a sink, and all later packets.
   * @param from scheduled time of the first packet that the former owner did not write, if known: one that is still
   * to come is awaited for a short time. Without it the last start point is used.
   */
  attach(to: TrackSink, from?: number): void {
    this.#to = to;
    this.#from = from;
    if (this.#isThere) this.#open();
    else this.#timer = setTimeout(() => this.#open(), AWAITED_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#places = [];
  }

  /** Whether waiting is pointless: no later packet can be the start point. */
  get #isThere(): boolean {
    return this.#from === undefined || (this.#places.at(-1)?.at ?? -Infinity) >= this.#from - ROUNDING_MS;
  }

  #addPlace(packet: Packet): void {
    const [at, came] = [this.#scheduledAt(packet), performance.now()];
    this.#places.push({ at, came, tracks: this.#tracks, content: [], bytes: 0 });
    this.#begin.resolve();
  }

  #trim(): void {
    const now = performance.now();
    for (;;) {
      const [first, second] = this.#places;
      if (first === undefined) return;
      // the last start point is kept longer
      const isOld = second === undefined ? now - first.came > LONGEST_MS : now - second.came > KEPT_MS;
      if (!isOld && this.#bytes <= MAX_BYTES) return;
      this.#bytes -= first.bytes;
      this.#places.shift();
    }
  }

  #open(): void {
    const to = this.#to;
    if (to === undefined || this.#isOpen) return;
    this.#isOpen = true;
    clearTimeout(this.#timer);
    const places = this.#places.slice(this.#indexOfFirst);
    const tracks = places[0]?.tracks ?? this.#tracks;
    if (tracks.length > 0) to.setTracks(tracks);
    for (const one of places.flatMap(({ content }) => content)) {
      if ('track' in one) this.#pass(one);
      else to.setTracks(one);
    }
    this.#places = [];
  }

  /** Index of the start point to begin with: the last one where `from` is unknown. */
  get #indexOfFirst(): number {
    const from = this.#from;
    const found = from === undefined ? -1 : this.#places.findIndex(({ at }) => at >= from - ROUNDING_MS);
    return found < 0 ? this.#places.length - 1 : found;
  }

  /** Drops packets before the first key frame, which cannot be decoded. */
  #pass(packet: Packet): void {
    if (packet.track.type === 'video') {
      if (packet.key) this.#waitsForKey = false;
      if (this.#waitsForKey) return;
    }
    this.#to?.write(packet);
  }

  get #hasVideo(): boolean {
    return this.#tracks.some(({ type }) => type === 'video');
  }
}
