import type { GopCache } from './gop-cache.ts';
import type { Packet } from './packet.ts';
import type { Reader } from './reader.ts';
import type { Stream } from './stream.ts';
import { isMedia, type Track } from './track.ts';

/** Keeps packets of a stream. It starts anew when a media track was replaced, whose packets no reader could place. */
export class CachedPackets {
  readonly #stream: Stream;
  readonly #create: () => GopCache;
  #packets: GopCache;
  #reader: Reader;
  #media: readonly Track[];
  /** New tracks, and tracks of events, are added. */
  readonly #onTracks = (): void => {
    const before = this.#media;
    this.#media = this.#stream.tracks.filter(isMedia);
    if (before.every((track) => this.#media.includes(track))) return;
    this.#reader.close();
    this.#packets = this.#create();
    this.#reader = this.#stream.read(this.#packets);
  };

  constructor(stream: Stream, create: () => GopCache) {
    this.#stream = stream;
    this.#create = create;
    this.#packets = create();
    this.#media = stream.tracks.filter(isMedia);
    this.#reader = stream.read(this.#packets);
    stream.on('tracks', this.#onTracks);
  }

  /** Present cache. */
  get packets(): GopCache {
    return this.#packets;
  }

  /** Hands over what is kept, oldest first. */
  replay(take: (packet: Packet) => void): void {
    this.#packets.replay(take);
  }

  /** Idempotent. */
  close(): void {
    this.#reader.close();
    this.#stream.off('tracks', this.#onTracks);
  }
}
