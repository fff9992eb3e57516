import { KeyGate } from '../core/key-gate.ts';
import type { Packet } from '../core/packet.ts';
import type { Consumer, Reader } from '../core/reader.ts';
import type { Track } from '../core/track.ts';

/** The bytes of a stream that its viewers share. */
export interface DeliveredFeed {
  readonly tracks: readonly Track[];
  readonly hasVideo: boolean;
  /** Adds a viewer. `detach` is called once, when it leaves. */
  attach(viewer: Consumer): { reader: Reader; detach: () => void };
  /** Hands over what there is from the last key frame on. */
  replay(take: (packet: Packet) => void): void;
  /**
   * Bytes that a viewer has to get before a packet of a track that it does not know in this form; absent: nothing ever.
   * @param known tracks that it knows, by id; updated
   */
  announce?(packet: Packet, known: Map<number, Track>): readonly Buffer[];
}

export interface DeliveryOptions {
  /** Starts with the last key frame; with the next one without it. */
  readonly fromLastKey: boolean;
  /** Kinds of media that are left out at first. */
  readonly unwanted?: Iterable<'audio' | 'video'>;
  /** @returns false while the viewer takes no more */
  readonly send: (data: Buffer) => boolean;
  /** The stream has ended. */
  readonly ended: (reason: string) => void;
}

/** Sends a feed to one viewer: what goes before its tracks first, and again when they change, media from a key frame on. */
export class FeedDelivery {
  readonly #feed: DeliveredFeed;
  readonly #options: DeliveryOptions;
  readonly #reader: Reader;
  readonly #detach: () => void;
  readonly #unwanted: Set<Track['type']>;
  #gate = new KeyGate();
  /** Tracks that were announced, by id. */
  readonly #announced = new Map<number, Track>();
  #closed = false;

  constructor(feed: DeliveredFeed, options: DeliveryOptions) {
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
    if (this.#feed.announce !== undefined && this.#announced.get(track.id) !== track)
      for (const data of this.#feed.announce(packet, this.#announced)) send(data);
    return send(packet.data);
  }

  #passes(packet: Packet): boolean {
    // audio alone has no key frame to wait for
    const isVideoSent = this.#feed.hasVideo && !this.#unwanted.has('video');
    if (!isVideoSent && packet.track.type !== 'video') return true;
    return this.#gate.passes(packet);
  }
}
