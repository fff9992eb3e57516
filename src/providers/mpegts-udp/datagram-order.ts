import { PACKET_BYTES, PID, SYNC_BYTE } from '../../containers/mpegts/stream-types.ts';
import { continuityCounter, hasPayload, isDiscontinuity, pidOf } from '../../containers/mpegts/transport-packet.ts';

/** Most packets of one PID in a datagram: a 4-bit counter is unambiguous while fewer than 16 packets are missing or held. */
const MOST_OF_PID = 7;
const MAX_PIDS = 64;
/** Bytes from one packet to the next: plain, or with Reed-Solomon bytes appended. */
const STRIDES = [PACKET_BYTES, 204] as const;

interface Held {
  readonly data: Buffer;
  readonly since: number;
}

/**
 * Restores the order of datagrams that have no sequence numbers by the continuity counters of their packets. A datagram
 * that does not follow is held for a limited time, and only while the counters are unambiguous: a missing datagram may
 * hold seven packets of a PID. A stream whose packets are cut across datagrams passes as it arrives, because its
 * counters cannot order them.
 */
export class DatagramOrder {
  readonly #waitMs: number;
  readonly #output: (data: Buffer) => void;
  readonly #counters = new Map<number, number>();
  #held: Held[] = [];
  #isCut = false;

  /** @param output gets datagrams in order, the same buffers */
  constructor(waitMs: number, output: (data: Buffer) => void) {
    this.#waitMs = waitMs;
    this.#output = output;
  }

  /** @param now in milliseconds of any monotonic clock */
  push(data: Buffer, now: number): void {
    if (!this.#isCut && isCut(data)) {
      this.#isCut = true;
      while (this.#held.length > 0) this.#giveUp();
    }
    if (this.#isCut) return this.#output(data);
    if (!this.#follows(data)) {
      this.#held.push({ data, since: now });
      if (!this.#isCertain()) this.#giveUp();
      return;
    }
    this.#pass(data);
  }

  /** Passes on the datagrams whose wait is over. To be called at `deadline`. */
  tick(now: number): void {
    for (let first = this.#held[0]; first !== undefined && first.since + this.#waitMs <= now; first = this.#held[0])
      this.#giveUp();
  }

  /** Time of the next `tick`; undefined when nothing is held. */
  get deadline(): number | undefined {
    const [first] = this.#held;
    return first && first.since + this.#waitMs;
  }

  #pass(data: Buffer): void {
    this.#emit(data);
    for (let next = this.#next(); next >= 0; next = this.#next()) {
      const [{ data: held }] = this.#held.splice(next, 1) as [Held];
      this.#emit(held);
    }
  }

  /** Whether the counters of a missing datagram cannot be confused with those of the held ones. */
  #isCertain(): boolean {
    const packets = new Map<number, number>();
    for (const { data } of this.#held) {
      for (let at = 0; isPacket(data, at); at += PACKET_BYTES) {
        if (!hasPayload(data, at) || pidOf(data, at) === PID.null) continue;
        const count = (packets.get(pidOf(data, at)) ?? 0) + 1;
        if (count > MOST_OF_PID) return false;
        packets.set(pidOf(data, at), count);
      }
    }
    return true;
  }

  #next(): number {
    return this.#held.length === 0 ? -1 : this.#held.findIndex(({ data }) => this.#follows(data));
  }

  #giveUp(): void {
    const first = this.#held.shift();
    if (first !== undefined) this.#pass(first.data);
  }

  #emit(data: Buffer): void {
    for (let at = 0; isPacket(data, at); at += PACKET_BYTES) {
      const pid = pidOf(data, at);
      if (this.#counters.size < MAX_PIDS || this.#counters.has(pid))
        this.#counters.set(pid, continuityCounter(data, at));
    }
    this.#output(data);
  }

  /** Whether the first packet of every PID continues its counter, or repeats the last value. */
  #follows(data: Buffer): boolean {
    for (let at = 0; isPacket(data, at); at += PACKET_BYTES) {
      const pid = pidOf(data, at);
      const last = this.#counters.get(pid);
      if (last === undefined || pid === PID.null || !hasPayload(data, at)) continue;
      if (isDiscontinuity(data, at) || !this.#isFirst(data, at)) continue;
      const step = (continuityCounter(data, at) - last) & 0xf;
      if (step > 1) return false;
    }
    return true;
  }

  #isFirst(data: Buffer, at: number): boolean {
    for (let before = 0; before < at; before += PACKET_BYTES)
      if (pidOf(data, before) === pidOf(data, at) && hasPayload(data, before)) return false;
    return true;
  }
}

/** Whether the last packet continues in the next datagram. */
function isCut(data: Buffer): boolean {
  return isPacket(data, 0) && STRIDES.every((bytes) => data.length % bytes !== 0);
}

function isPacket(data: Buffer, at: number): boolean {
  return at + PACKET_BYTES <= data.length && data[at] === SYNC_BYTE;
}
