import type { RtpPacket } from './packet.ts';

/** Receives the packets of one source, in order. */
export interface ReorderSink {
  packet(packet: RtpPacket): void;
  /** Number of packets before the next one that did not come. */
  lost(count: number): void;
  /** The next packet is unrelated to those before: another SSRC, or another count. */
  restarted(): void;
}

const CAPACITY = 512;
/** A step further ahead, or back, is a new count and no gap and no late packet (RFC 3550 appendix A.1). */
const MAX_DROPOUT = 3000;
const MAX_MISORDER = 512;

/**
 * Orders the packets of one source by sequence number. A gap delays later packets for a limited time and a limited number of
 * packets; then it is reported as lost. Duplicate and late packets are left out.
 * A new count, or another source, is accepted when two of its packets follow each other: one stray packet changes nothing.
 * The caller drives the time, in milliseconds of any monotonic clock.
 */
export class ReorderWindow {
  /** Number of packets dropped as duplicate or too late. */
  dropped = 0;
  readonly #waitMs: number;
  readonly #sink: ReorderSink;
  /** By sequence number, modulo the capacity, and when each came. */
  readonly #held: (RtpPacket | undefined)[] = Array.from({ length: CAPACITY }, () => undefined);
  readonly #heldSince = new Float64Array(CAPACITY);
  #count = 0;
  #ssrc: number | undefined;
  #next = 0;
  /** Sequence numbers of unusable packets, modulo the capacity; undefined before the first. */
  #others: Int32Array | undefined;
  /** First packet of a possible new count or source. */
  #stray: RtpPacket | undefined;

  /** @param waitMs how long a gap is waited for; 0 where the transport keeps the order */
  constructor(waitMs: number, sink: ReorderSink) {
    this.#waitMs = waitMs;
    this.#sink = sink;
  }

  /** Source of the accepted packets; undefined before the first. */
  get ssrc(): number | undefined {
    return this.#ssrc;
  }

  push(packet: RtpPacket, now: number): void {
    if (this.#ssrc === undefined) this.#begin(packet);
    let ahead = packet.ssrc === this.#ssrc ? distance(this.#next, packet.sequence) : Infinity;
    if (ahead > MAX_DROPOUT || ahead < -MAX_MISORDER) {
      this.#strayed(packet, now);
      return;
    }
    this.#stray = undefined;
    if (ahead > 0 && this.#others !== undefined) {
      this.#passOthers(packet.sequence);
      ahead = distance(this.#next, packet.sequence);
    }
    if (ahead < 0) this.dropped++;
    else if (ahead === 0) this.#pass(packet);
    else this.#hold(packet, ahead, now);
  }

  /**
   * Takes note of a packet that is nothing to the sink, as of a payload type that is not taken: where it is of the same count
   * its number is no gap. Only a gap in the others shows whether it is, so it moves nothing by itself.
   * @returns false when it is surely of another source or count
   */
  other({ ssrc, sequence }: RtpPacket): boolean {
    const ahead = ssrc === this.#ssrc ? distance(this.#next, sequence) : -1;
    if (ahead < 0 || ahead >= CAPACITY) return false;
    this.#others ??= new Int32Array(CAPACITY).fill(-1);
    this.#others[sequence % CAPACITY] = sequence;
    this.#passHeld();
    return true;
  }

  /** Gives up gaps that were waited for long enough. To be called when `deadline` has come. */
  tick(now: number): void {
    while (this.#count > 0 && this.#oldest + this.#waitMs <= now) this.#giveUp();
  }

  /** Time at which to call `tick`; undefined when no packet is held. */
  get deadline(): number | undefined {
    return this.#count === 0 ? undefined : this.#oldest + this.#waitMs;
  }

  /** Delivers all held packets. */
  flush(): void {
    while (this.#count > 0) this.#giveUp();
  }

  #begin({ ssrc, sequence }: RtpPacket): void {
    this.#ssrc = ssrc;
    this.#next = sequence;
    this.#others = undefined;
  }

  #strayed(packet: RtpPacket, now: number): void {
    const before = this.#stray;
    const follows = before?.ssrc === packet.ssrc && distance(before.sequence, packet.sequence) === 1;
    this.#stray = packet;
    if (before === undefined || !follows) {
      if (before !== undefined) this.dropped++;
      return;
    }
    this.flush();
    this.#stray = undefined;
    this.#sink.restarted();
    this.#begin(before);
    this.push(before, now);
    this.push(packet, now);
  }

  #hold(packet: RtpPacket, ahead: number, now: number): void {
    if (this.#waitMs === 0) {
      this.#skip(ahead);
      this.#pass(packet);
      return;
    }
    while (distance(this.#next, packet.sequence) >= CAPACITY && this.#count > 0) this.#giveUp();
    const far = distance(this.#next, packet.sequence);
    if (far >= CAPACITY) this.#skip(far - CAPACITY + 1);
    if (packet.sequence === this.#next) {
      this.#pass(packet);
      return;
    }
    const at = packet.sequence % CAPACITY;
    if (this.#held[at] !== undefined) {
      this.dropped++;
      return;
    }
    this.#held[at] = packet;
    this.#heldSince[at] = now;
    this.#count++;
  }

  /** Hands over a packet whose turn it is, and what waited for it. */
  #pass(packet: RtpPacket): void {
    if (this.#others !== undefined) this.#others[this.#next % CAPACITY] = -1;
    this.#next = following(this.#next);
    this.#sink.packet(packet);
    this.#passHeld();
  }

  #passHeld(): void {
    while (this.#count > 0) {
      this.#passOthers();
      const at = this.#next % CAPACITY;
      const turn = this.#held[at];
      if (turn === undefined) return;
      this.#held[at] = undefined;
      this.#count--;
      this.#next = following(this.#next);
      this.#sink.packet(turn);
    }
  }

  /** Goes over numbers of packets of no use, but for one that a packet has, too. @param own that of a packet which is not held */
  #passOthers(own?: number): void {
    while (this.#next !== own && this.#held[this.#next % CAPACITY] === undefined && this.#takeOther())
      this.#next = following(this.#next);
  }

  /** Whether the next number is that of a packet of no use, which is forgotten then. */
  #takeOther(): boolean {
    const at = this.#next % CAPACITY;
    if (this.#others?.[at] !== this.#next) return false;
    this.#others[at] = -1;
    return true;
  }

  /** When the packet behind the first gap came: those behind it are in order of their numbers, not of their coming. */
  get #oldest(): number {
    let oldest = Infinity;
    for (let i = 1, found = 0; i < CAPACITY && found < this.#count; i++) {
      const at = (this.#next + i) % CAPACITY;
      if (this.#held[at] === undefined) continue;
      found++;
      oldest = Math.min(oldest, this.#heldSince[at] as number);
    }
    return oldest;
  }

  /** Reports the first gap as lost, and delivers the packets after it up to the next. */
  #giveUp(): void {
    let gap = 1;
    while (this.#held[(this.#next + gap) % CAPACITY] === undefined) gap++;
    this.#skip(gap);
    const at = this.#next % CAPACITY;
    const packet = this.#held[at] as RtpPacket;
    this.#held[at] = undefined;
    this.#count--;
    this.#pass(packet);
  }

  #skip(count: number): void {
    const end = (this.#next + count) & 0xffff;
    let lost = count;
    for (; this.#others !== undefined && this.#next !== end; this.#next = following(this.#next))
      if (this.#takeOther()) lost--;
    this.#next = end;
    if (lost > 0) this.#sink.lost(lost);
  }
}

function following(sequence: number): number {
  return (sequence + 1) & 0xffff;
}

/** Distance of two sequence numbers, -2^15 to 2^15 - 1. */
function distance(from: number, to: number): number {
  return ((to - from) << 16) >> 16;
}
