import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import type { Reader } from '../../core/reader.ts';
import { isMedia, sameFormat, type Track } from '../../core/track.ts';
import type { FlvFeed } from './feed.ts';

export interface DeliveryOptions {
  /** Starts with the last key frame; with the next one without it. */
  readonly fromLastKey: boolean;
  /** Kinds of media that are left out at first. */
  readonly unwanted?: Iterable<'audio' | 'video'>;
  /** Sends tags. @returns false while the viewer takes no more */
  readonly send: (tags: Buffer) => boolean;
  /** The stream has ended. */
  readonly ended: (reason: string) => void;
}

/** Sends the tags of a feed to one viewer: metadata and configurations first, and again when they change, media from a key frame on. */
export class FlvDelivery {
  readonly #feed: FlvFeed;
  readonly #options: DeliveryOptions;
  readonly #reader: Reader;
  readonly #detach: () => void;
  readonly #unwanted: Set<Track['type']>;
  #gate = new KeyGate();
  /** Tracks whose configuration was sent, by id; undefined before the metadata. */
  #announced: Map<number, Track> | undefined;
  #closed = false;

  constructor(feed: FlvFeed, options: DeliveryOptions) {
    this.#feed = feed;
    this.#options = options;
    this.#unwanted = new Set(options.unwanted);
    if (feed.hasVideo) this.#gate.silence();
    if (options.fromLastKey) feed.replay((packet) => void this.#packet(packet));
    const { reader, detach } = feed.attach({
      packet: (packet) => this.#packet(packet),
      close: (reason) => options.ended(reason),
    });
    this.#reader = reader;
    this.#detach = detach;
  }

  /** Packets that the viewer was too slow for. */
  get dropped(): number {
    return this.#reader.dropped;
  }

  /** The viewer takes more. */
  resume(): void {
    this.#reader.resume();
  }

  /** Sends a kind of media, or leaves it out. Video goes on at a key frame. */
  receive(kind: 'audio' | 'video', isWanted: boolean): void {
    if (!isWanted) this.#unwanted.add(kind);
    else if (this.#unwanted.delete(kind) && kind === 'video')
      for (const track of this.#feed.tracks) this.#gate.lose({ track });
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#detach();
  }

  #packet(packet: Packet): boolean {
    const { track } = packet;
    if (this.#unwanted.has(track.type)) return true;
    if (this.#gate.waits && !this.#passes(packet)) return true;
    const { send } = this.#options;
    if (this.#announced?.get(track.id) !== track) this.#announce(packet);
    return send(packet.data);
  }

  #passes(packet: Packet): boolean {
    // audio alone has no key frame to wait for
    const isVideoSent = this.#feed.hasVideo && !this.#unwanted.has('video');
    if (!isVideoSent && packet.track.type !== 'video') return true;
    return this.#gate.passes(packet);
  }

  #announce(packet: Packet): void {
    const { track } = packet;
    const known = this.#announced?.get(track.id);
    const isFirst = this.#announced === undefined;
    this.#announced ??= new Map();
    this.#announced.set(track.id, track);
    if (!isMedia(track) || (known !== undefined && sameFormat(known, track))) return;
    const time = this.#feed.timeOf(packet);
    const tracks = isFirst ? this.#feed.tracks.map((one) => (one.id === track.id ? track : one)) : [track];
    this.#options.send(this.#feed.metadata());
    for (const one of tracks) {
      const config = this.#feed.config(one, time);
      this.#announced.set(one.id, one);
      if (config !== undefined) this.#options.send(config);
    }
  }
}
