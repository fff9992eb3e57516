import { KeyGate } from './key-gate.ts';
import type { Packet } from './packet.ts';
import type { Consumer, ReaderLimits } from './reader.ts';
import { toSeconds } from './timebase.ts';
import type { Track } from './track.ts';

/** Media kept of a stream without video. */
const AUDIO_SECONDS = 1;
/** Media time between removals of packets that are not needed any more. */
const TRIM_SECONDS = 1;
/** Share of a limit that is left when it is passed, so that the next packet does not pass it again. */
const LEFT = 0.75;

/**
 * The packets of all tracks of a stream from its last video key frame on, in the order of arrival: a new reader starts with them.
 * With several video tracks it begins at the oldest of their last key frames; without video it keeps the last second. It holds
 * references and copies nothing.
 *
 * Beyond its limits the oldest packets are dropped, and those that cannot be decoded without them.
 */
export class GopCache implements Consumer {
  readonly #limits: ReaderLimits;
  readonly #needed: (track: Track, now: number) => number;
  #packets: Packet[] = [];
  #bytes = 0;
  readonly #known = new Set<number>();
  #gate = new KeyGate();
  #trimmed = -Infinity;

  /**
   * @param needed the presentation time of a track, in seconds, from which on a replay has to be able to decode it;
   *   Infinity where the last key frame will do; `now` is the time of the newest packet.
   */
  constructor(limits: ReaderLimits, needed: (track: Track, now: number) => number = () => Infinity) {
    this.#limits = limits;
    this.#needed = needed;
  }

  get bytes(): number {
    return this.#bytes;
  }

  packet(packet: Packet): void {
    this.#meet(packet);
    if (!this.#gate.waits || this.#gate.passes(packet)) this.#add(packet);
    const [oldest] = this.#packets;
    if (oldest !== undefined && !this.#fits(this.#bytes, oldest, packet, 1)) this.#shed(packet);
  }

  close(): void {
    this.#packets = [];
    this.#bytes = 0;
  }

  /** Hands over what is kept, oldest first. */
  replay(take: (packet: Packet) => void): void {
    for (const packet of [...this.#packets]) take(packet);
  }

  /**
   * Hands over what it takes to decode everything from a time on.
   * @param from in seconds of presentation; Infinity: from the last key frame on
   */
  replayFrom(from: number, take: (packet: Packet) => void): void {
    for (const packet of this.#packets.slice(this.#start(() => from))) take(packet);
  }

  /** Whether what is kept is enough to decode everything from a time on. */
  reaches(from: number): boolean {
    const videos = this.#videoStarts(() => from);
    const starts = videos.length > 0 ? videos : [0];
    return !this.#gate.waits && starts.every((start) => isBefore(this.#packets[start], from));
  }

  /** Keeps no more than it takes to decode everything from the last key frame on. */
  shorten(): void {
    this.#cut(this.#start(() => Infinity));
  }

  /** Holds back a video track that did not start with a key frame until there is one. */
  #meet(packet: Packet): void {
    if (this.#known.has(packet.track.id)) return;
    this.#known.add(packet.track.id);
    this.#gate.lose(packet);
  }

  #add(packet: Packet): void {
    this.#packets.push(packet);
    this.#bytes += packet.data.length;
    const now = decodedAt(packet);
    const isKey = packet.key && packet.track.type === 'video';
    if (isKey || Math.abs(now - this.#trimmed) >= TRIM_SECONDS) this.#trim(now);
  }

  #trim(now: number): void {
    this.#trimmed = now;
    this.#cut(this.#start((track) => this.#needed(track, now)));
  }

  /** Index at which a replay has to begin so that each track can be decoded from a time on. */
  #start(needed: (track: Track) => number): number {
    const starts = [...this.#videoStarts(needed), ...this.#audioStarts(needed)];
    return starts.length > 0 ? Math.min(...starts) : 0;
  }

  /** Index of the last key frame of each video track that is early enough, or else of its first one. */
  #videoStarts(needed: (track: Track) => number): number[] {
    const starts = new Map<number, number>();
    for (const [i, packet] of this.#packets.entries()) {
      const { track, key } = packet;
      if (!key || track.type !== 'video') continue;
      if (!starts.has(track.id) || presentedAt(packet) <= needed(track)) starts.set(track.id, i);
    }
    return [...starts.values()];
  }

  /** Index of the first needed packet of each audio track for which a time is given, or which has no video beside it. */
  #audioStarts(needed: (track: Track) => number): number[] {
    const newest = this.#packets.at(-1);
    const now = newest === undefined ? 0 : decodedAt(newest);
    const alone = !this.#packets.some(({ track }) => track.type === 'video');
    const starts = new Map<number, number>();
    for (const [i, packet] of this.#packets.entries()) {
      const { track } = packet;
      if (track.type !== 'audio' || starts.has(track.id)) continue;
      const wanted = Math.min(needed(track), alone ? now - AUDIO_SECONDS : Infinity);
      if (presentedAt(packet) >= wanted) starts.set(track.id, i);
    }
    return [...starts.values()];
  }

  #shed(newest: Packet): void {
    let bytes = this.#bytes;
    const start = this.#packets.findIndex((packet) => {
      if (this.#fits(bytes, packet, newest, LEFT)) return true;
      bytes -= packet.data.length;
      return false;
    });
    const last = this.#start(() => Infinity);
    const isLastKept = last > 0 && (start < 0 || start > last) && this.#fitsFrom(last, newest);
    this.#cut(isLastKept ? last : start < 0 ? this.#packets.length : start);
  }

  #fitsFrom(start: number, newest: Packet): boolean {
    const packets = this.#packets.slice(start);
    const bytes = packets.reduce((sum, { data }) => sum + data.length, 0);
    return this.#fits(bytes, packets[0] ?? newest, newest, 1);
  }

  #fits(bytes: number, oldest: Packet, newest: Packet, share: number): boolean {
    const seconds = decodedAt(newest) - decodedAt(oldest);
    return bytes <= this.#limits.bytes * share && seconds <= this.#limits.seconds * share;
  }

  #cut(start: number): void {
    if (start === 0) return;
    const { kept, gate } = this.#gate.cut(this.#packets, start);
    this.#packets = kept;
    this.#gate = gate;
    this.#bytes = kept.reduce((bytes, { data }) => bytes + data.length, 0);
  }
}

function decodedAt({ dts, track }: Packet): number {
  return toSeconds(dts, track.timebase);
}

function isBefore(packet: Packet | undefined, time: number): boolean {
  return packet !== undefined && presentedAt(packet) <= time;
}

function presentedAt({ pts, track }: Packet): number {
  return toSeconds(pts, track.timebase);
}
