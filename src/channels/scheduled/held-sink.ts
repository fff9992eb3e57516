import type { Packet } from '../../core/packet.ts';
import type { Track } from '../../core/track.ts';
import type { TrackSink } from '../../providers/intake/track-writer.ts';

/** What is kept at most: places where the stream may be gone on with, and what follows them. */
const KEPT_MS = 5000;
const MAX_BYTES = 32 * 1024 * 1024;
/** A longer group of pictures is begun with the next key frame. */
const LONGEST_MS = 15_000;
/** Times of files are rounded. */
const ROUNDING_MS = 5;
/** How long a place that has yet to come is waited for: the clock of this node may be behind. */
const AWAITED_MS = 2000;

/** Where a stream may be gone on with: a key frame, or without video any packet, and what follows it. */
interface Place {
  /** When it is scheduled, in milliseconds since the epoch. */
  readonly at: number;
  /** When it came, in milliseconds of the monotonic clock. */
  readonly came: number;
  /** Of the stream at this place. */
  readonly tracks: readonly Track[];
  /** Packets, and tracks that it has from then on. */
  readonly content: (Packet | readonly Track[])[];
  bytes: number;
}

/**
 * Keeps what a channel writes that stands by, until it is known where it goes, and what is the first that its former owner
 * did not write.
 */
export class HeldSink implements TrackSink {
  /** Resolves when something can be begun with. */
  readonly begun: Promise<void>;
  readonly #begin = Promise.withResolvers<void>();
  readonly #scheduledAt: (packet: Packet) => number;
  #places: Place[] = [];
  #bytes = 0;
  #tracks: readonly Track[] = [];
  /** Where it goes, and whether it does so already. */
  #to: TrackSink | undefined;
  #isOpen = false;
  /** When what it is to begin with is scheduled. */
  #from: number | undefined;
  /** No key frame of video has gone there yet. */
  #waitsForKey = true;
  #timer: NodeJS.Timeout | undefined;

  /** @param scheduledAt when a packet that is being written is scheduled, in milliseconds since the epoch, the same on every node */
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
   * What is kept goes there, and all that follows.
   * @param from when the first is scheduled that the former owner did not write, if that is known: where it is yet to come it is
   *   waited for, for a short time. Otherwise it begins with the last place.
   */
  attach(to: TrackSink, from?: number): void {
    this.#to = to;
    this.#from = from;
    if (this.#isThere) this.#open();
    else this.#timer = setTimeout(() => this.#open(), AWAITED_MS);
  }

  /** Idempotent. */
  close(): void {
    clearTimeout(this.#timer);
    this.#places = [];
  }

  /** Whether it need not wait: nothing that comes later can be what it is to begin with. */
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
      // of the last place what follows is kept for longer
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

  /** Of the places, that which it begins with: the last one where nothing tells which. */
  get #indexOfFirst(): number {
    const from = this.#from;
    const found = from === undefined ? -1 : this.#places.findIndex(({ at }) => at >= from - ROUNDING_MS);
    return found < 0 ? this.#places.length - 1 : found;
  }

  /** What comes before the first key frame cannot be decoded. */
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
