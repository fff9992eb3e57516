import { GopCache } from '../../core/gop-cache.ts';
import type { Packet } from '../../core/packet.ts';
import type { Track } from '../../core/track.ts';
import type { TrackSink } from '../intake/track-writer.ts';

/** Longer groups of pictures are begun with their next key frame. */
const LIMITS = { bytes: 16 * 1024 * 1024, seconds: 15 };
/**
 * A stream that is handed over ends right before a key frame. Where the clock of this node is a little behind, that is yet to
 * come: a key frame that is older than this is not the one.
 */
const FRESH_MS = 500;

/** Keeps what a channel writes that stands by, from its last key frame on, until it is known where it goes. */
export class HeldSink implements TrackSink {
  /** Resolves when something can be begun with. */
  readonly begun: Promise<void>;
  readonly #begin = Promise.withResolvers<void>();
  readonly #cache = new GopCache(LIMITS);
  #tracks: readonly Track[] = [];
  /** When the last key frame came, in milliseconds of the monotonic clock. */
  #keyAt = -Infinity;
  /** Where it goes, and whether it does so already. */
  #to: TrackSink | undefined;
  #isOpen = false;
  /** No key frame of video has gone there yet. */
  #waitsForKey = true;
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.begun = this.#begin.promise;
  }

  setTracks(tracks: readonly Track[]): void {
    this.#tracks = tracks;
    if (this.#isOpen) this.#to?.setTracks(tracks);
  }

  write(packet: Packet): void {
    if (this.#isOpen) return this.#pass(packet);
    this.#cache.packet(packet);
    const isKey = packet.key && packet.track.type === 'video';
    if (isKey) this.#keyAt = performance.now();
    if (isKey || !this.#hasVideo) this.#begin.resolve();
    if (isKey) this.#open();
  }

  /** What is kept goes there, with the next key frame if that is about to come, and all that follows. */
  attach(to: TrackSink): void {
    this.#to = to;
    const isFresh = performance.now() - this.#keyAt < FRESH_MS;
    if (isFresh || !this.#hasVideo) this.#open();
    else this.#timer = setTimeout(() => this.#open(), FRESH_MS);
  }

  /** Idempotent. */
  close(): void {
    clearTimeout(this.#timer);
    this.#cache.close();
  }

  #open(): void {
    const to = this.#to;
    if (to === undefined || this.#isOpen) return;
    this.#isOpen = true;
    clearTimeout(this.#timer);
    if (this.#tracks.length > 0) to.setTracks(this.#tracks);
    // without video there is nothing to decode what follows with
    if (this.#hasVideo)
      this.#cache.replay((packet) => {
        if (this.#tracks.includes(packet.track)) this.#pass(packet);
      });
    this.#cache.close();
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
