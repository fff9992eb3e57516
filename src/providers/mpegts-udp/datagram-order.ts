import { PACKET_BYTES, PID, SYNC_BYTE } from '../../containers/mpegts/stream-types.ts';
import { continuityCounter, hasPayload, isDiscontinuity, pidOf } from '../../containers/mpegts/transport-packet.ts';

/** Packets of one PID in a datagram, at most: a counter of 4 bits is certain as long as fewer than that and so many are missing. */
const MOST_OF_PID = 7;
const MAX_PIDS = 64;
/** From one packet to the next, plain or with Reed-Solomon bytes behind. */
const STRIDES = [PACKET_BYTES, 204] as const;

interface Held {
  readonly data: Buffer;
  readonly since: number;
}

/**
 * Brings datagrams of a plain transport stream, which have no numbers of their own, into the order that the continuity
 * counters of their packets tell. One that does not follow is held up for a limited time, and for as long as no counter
 * can be mistaken: what comes before the one that is missing may hold seven packets of a PID. Of a stream whose packets are
 * cut anywhere counters tell nothing: it passes as it comes.
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

  /** Gives up what was waited for long enough. To be called when `deadline` has come. */
  tick(now: number): void {
    for (let first = this.#held[0]; first !== undefined && first.since + this.#waitMs <= now; first = this.#held[0])
      this.#giveUp();
  }

  /** When `tick` has something to do; undefined when nothing is held up. */
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

  /** Whether the counters of the one that is missing, and of those behind, cannot be taken for each other. */
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

  /** Whether the first packet of every PID goes on where that PID is, or repeats what was there last. */
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

/** Whether its last packet goes on in the next datagram. */
function isCut(data: Buffer): boolean {
  return isPacket(data, 0) && STRIDES.every((bytes) => data.length % bytes !== 0);
}

function isPacket(data: Buffer, at: number): boolean {
  return at + PACKET_BYTES <= data.length && data[at] === SYNC_BYTE;
}
