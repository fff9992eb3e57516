import type { Packet } from './packet.ts';
import { toSeconds } from './timebase.ts';

/** What a publisher hands to `Stream.read`. */
export interface Consumer {
  /**
   * Takes one packet. A new configuration shows as a new `packet.track` object.
   * Answers false when it can take no more until it calls `reader.resume()`.
   */
  packet(packet: Packet): boolean | void;
  /** The stream has ended; nothing follows. */
  close?(reason: string): void;
}

export interface ReaderLimits {
  readonly bytes: number;
  readonly seconds: number;
}

const DEFAULT_LIMITS: ReaderLimits = { bytes: 16 * 1024 * 1024, seconds: 5 };

/**
 * One consumer's view of a stream. A consumer that keeps up is called in the writer's own turn:
 * no queue, no delay. One that does not is queued for within limits of bytes and media time; beyond them
 * what is queued in front of its newest video key frame is dropped, counted, or all of it up to the next one.
 * It never holds up the writer or another reader.
 */
export class Reader {
  readonly #consumer: Consumer;
  readonly #limits: ReaderLimits;
  readonly #detach: (reader: Reader) => void;
  #queue: Packet[] = [];
  /** Packets at the start of the queue that were delivered. */
  #taken = 0;
  #queuedBytes = 0;
  #paused = false;
  #draining = false;
  #waitForKey = false;
  #closed = false;
  #dropped = 0;

  constructor(consumer: Consumer, detach: (reader: Reader) => void, limits = DEFAULT_LIMITS) {
    this.#consumer = consumer;
    this.#detach = detach;
    this.#limits = limits;
  }

  /** Packets this consumer was too slow for. */
  get dropped(): number {
    return this.#dropped;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Called by the stream for every packet. */
  push(packet: Packet): void {
    if (this.#closed) return;
    if (this.#waitForKey) {
      if (packet.track.type !== 'video' || !packet.key) {
        this.#dropped++;
        return;
      }
      this.#waitForKey = false;
    }
    if (!this.#paused && this.#queue.length === 0) {
      if (this.#consumer.packet(packet) === false) this.#paused = true;
      return;
    }
    this.#queue.push(packet);
    this.#queuedBytes += packet.data.length;
    if (this.#overLimit(packet)) this.#shed(packet);
  }

  /** Called by the stream when its video is gone: there is no key frame to wait for. */
  videoGone(): void {
    this.#waitForKey = false;
  }

  /** Called by the consumer when it can take packets again. */
  resume(): void {
    this.#paused = false;
    if (this.#draining) return;
    this.#draining = true;
    try {
      while (!this.#paused && this.#taken < this.#queue.length) {
        const packet = this.#queue[this.#taken++] as Packet;
        this.#queuedBytes -= packet.data.length;
        if (this.#consumer.packet(packet) === false) this.#paused = true;
      }
    } finally {
      this.#keep(this.#queue.slice(this.#taken));
      this.#draining = false;
    }
  }

  /** Stops delivery. Idempotent; the consumer's `close` is not called. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#keep([]);
    this.#detach(this);
  }

  /** Called by the stream when it ends. */
  end(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#consumer.close?.(reason);
  }

  #overLimit(newest: Packet): boolean {
    if (this.#queuedBytes > this.#limits.bytes) return true;
    const oldest = this.#queue[this.#taken] as Packet;
    const seconds =
      toSeconds(newest.dts, newest.track.timebase) - toSeconds(oldest.dts, oldest.track.timebase);
    return seconds > this.#limits.seconds;
  }

  #shed(newest: Packet): void {
    const queued = this.#queue.length - this.#taken;
    const key = this.#queue.findLastIndex(isVideoKey);
    this.#waitForKey = this.#queue.some(isVideo);
    this.#keep(key > this.#taken ? this.#queue.slice(key) : []);
    if (this.#queue.length > 0 && this.#overLimit(newest)) this.#keep([]);
    if (this.#queue.length > 0) this.#waitForKey = false;
    this.#dropped += queued - this.#queue.length;
  }

  #keep(packets: Packet[]): void {
    this.#queue = packets;
    this.#taken = 0;
    this.#queuedBytes = 0;
    for (const packet of packets) this.#queuedBytes += packet.data.length;
  }
}

function isVideo({ track }: Packet): boolean {
  return track.type === 'video';
}

function isVideoKey(packet: Packet): boolean {
  return packet.key && isVideo(packet);
}
