import type { Counters } from './counters.ts';
import { KeyGate, lastKeys } from './key-gate.ts';
import type { Packet } from './packet.ts';
import type { Queue } from './queue.ts';
import type { WaitingLine } from './waiting-line.ts';
import { toSeconds } from './timebase.ts';

/** Receiver of a stream's packets, for `Stream.read`. */
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

export const DEFAULT_LIMITS: ReaderLimits = { bytes: 16 * 1024 * 1024, seconds: 5 };

/**
 * One consumer's view of a stream. A consumer that keeps up is called in the writer's own turn:
 * no queue, no delay. One that does not is queued for within limits of bytes and media time; beyond them
 * what is queued in front of the newest key frames of its video is dropped, counted, or all of it up to the next one.
 * Of several video tracks each goes on at a key frame of its own. It never holds up the writer or another reader.
 */
export class Reader {
  readonly #consumer: Consumer;
  readonly #limits: ReaderLimits;
  readonly #detach: (reader: Reader) => void;
  readonly #counters: Pick<Counters, 'dropped'> | undefined;
  readonly #shared: Queue | undefined;
  #queue: Packet[] = [];
  /** Packets at the start of the queue that were delivered. */
  #taken = 0;
  #queuedBytes = 0;
  readonly #line: WaitingLine | undefined;
  #paused = false;
  #draining = false;
  /** Behind a loss, until all that is written can be decoded. */
  #gate: KeyGate | undefined;
  #closed = false;
  #dropped = 0;

  /**
   * @param counters hear of what it drops
   * @param shared counts its queue together with those of its like
   */
  constructor(
    consumer: Consumer,
    detach: (reader: Reader) => void,
    limits = DEFAULT_LIMITS,
    counters?: Pick<Counters, 'dropped'>,
    shared?: Queue,
  ) {
    this.#consumer = consumer;
    this.#detach = detach;
    this.#counters = counters;
    this.#limits = limits;
    this.#shared = shared;
    this.#line = shared?.join();
  }

  /** Packets this consumer was too slow for. */
  get dropped(): number {
    return this.#dropped;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** How much media is queued. */
  get queuedSeconds(): number {
    const oldest = this.#queue[this.#taken];
    const newest = this.#queue.at(-1);
    return oldest === undefined || newest === undefined ? 0 : secondsBetween(oldest, newest);
  }

  /** Called by the stream for every packet. */
  push(packet: Packet): void {
    if (this.#closed) return;
    if (this.#shared !== undefined) this.#shared.came++;
    if (this.#gate !== undefined && !this.#passes(this.#gate, packet)) {
      this.#drop(1, false);
      return;
    }
    if (!this.#paused && this.#queue.length === 0) {
      if (this.#consumer.packet(packet) === false) this.#paused = true;
      return;
    }
    this.#queue.push(packet);
    this.#queuedBytes += packet.data.length;
    if (this.#overLimit(packet)) this.#shed();
    else this.#count();
  }

  /** Called by the stream when its video is gone: there is no key frame to wait for. */
  videoGone(): void {
    this.#gate = undefined;
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
      this.#count();
      this.#draining = false;
    }
  }

  /** Called by a consumer that is too far behind: drops what is queued as if that were beyond the limits. */
  skip(): void {
    if (this.#taken < this.#queue.length) this.#shed();
  }

  /** Stops delivery. Idempotent; the consumer's `close` is not called. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#count();
    if (this.#line !== undefined) this.#shared?.leave(this.#line);
    this.#keep([]);
    this.#detach(this);
  }

  /** Called by the stream when it ends. */
  end(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#consumer.close?.(reason);
  }

  #passes(gate: KeyGate, packet: Packet): boolean {
    const passes = gate.passes(packet);
    if (!gate.waits) this.#gate = undefined;
    return passes;
  }

  #overLimit(newest: Packet): boolean {
    return !this.#fits(this.#queuedBytes, this.#queue[this.#taken] as Packet, newest);
  }

  #fits(bytes: number, oldest: Packet, newest: Packet): boolean {
    return bytes <= this.#limits.bytes && secondsBetween(oldest, newest) <= this.#limits.seconds;
  }

  #shed(): void {
    const queued = this.#queue.slice(this.#taken);
    const isNews = this.#gate === undefined;
    const { kept, gate } = this.#newest(queued);
    this.#keep(kept);
    this.#gate = gate;
    this.#drop(queued.length - kept.length, isNews);
    this.#count(false);
  }

  #drop(packets: number, isNews: boolean): void {
    this.#dropped += packets;
    this.#counters?.dropped(packets, isNews);
    if (this.#shared !== undefined) this.#shared.dropped += packets;
  }

  /** Updates the shared count after a change of the queue. @param isTaken whether fewer packets were taken, and not dropped */
  #count(isTaken = true): void {
    if (this.#line === undefined) return;
    this.#shared?.resize(this.#line, this.#queue.length - this.#taken - this.#line.size, isTaken);
  }

  /** As many of the queued packets, from a key frame on, as the limits allow. */
  #newest(queued: readonly Packet[]): { kept: Packet[]; gate: KeyGate } {
    const before = this.#gate ?? new KeyGate();
    for (const start of lastKeys(queued)) {
      const cut = before.cut(queued, start);
      const {
        kept: [oldest, ...others],
      } = cut;
      if (oldest === undefined) continue;
      if (this.#fits(bytesOf(cut.kept), oldest, others.at(-1) ?? oldest)) return cut;
    }
    const none = before.cut(queued, queued.length);
    if (queued.some(({ track }) => track.type === 'video')) none.gate.silence();
    return none;
  }

  #keep(packets: Packet[]): void {
    this.#queue = packets;
    this.#taken = 0;
    this.#queuedBytes = bytesOf(packets);
  }
}

function bytesOf(packets: readonly Packet[]): number {
  return packets.reduce((bytes, { data }) => bytes + data.length, 0);
}

function secondsBetween(one: Packet, other: Packet): number {
  return toSeconds(other.dts, other.track.timebase) - toSeconds(one.dts, one.track.timebase);
}
