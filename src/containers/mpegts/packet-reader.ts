import { PACKET_BYTES, SYNC_BYTE } from './stream-types.ts';

/** Bytes from one packet to the next: plain; with a time before it, as in M2TS; with Reed-Solomon bytes after it. */
const STRIDES = [PACKET_BYTES, 192, 204] as const;
const EMPTY = Buffer.alloc(0);

export interface PacketReaderEvents {
  /** Reports a packet: 188 bytes of `data`, from `at` on. */
  packet(data: Buffer, at: number): void;
  /** Reports that bytes outside packets were skipped. */
  garbage(): void;
}

/**
 * Finds transport packets in bytes of any portions, and resynchronises after anything else (ISO/IEC 13818-1 2.4.3.2).
 * Keeps less than three packets.
 */
export class PacketReader {
  readonly #events: PacketReaderEvents;
  /** undefined while the position of packets is unknown. */
  #stride: number | undefined;
  #skip = 0;
  /** Beginning of an incomplete packet. */
  readonly #begun = Buffer.alloc(PACKET_BYTES);
  #have = 0;
  /** Bytes to search for packets. */
  #unknown: Buffer = EMPTY;

  constructor(events: PacketReaderEvents) {
    this.#events = events;
  }

  /** @param data is not kept */
  push(data: Buffer): void {
    if (this.#stride === undefined) this.#search(data);
    else this.#read(data, this.#stride);
  }

  #read(data: Buffer, stride: number): void {
    let at = 0;
    while (at < data.length) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, data.length - at);
        this.#skip -= skipped;
        at += skipped;
      } else if (this.#have > 0) {
        at = this.#complete(data, at, stride);
      } else if (data[at] !== SYNC_BYTE) {
        this.#stride = undefined;
        this.#events.garbage();
        this.#search(data.subarray(at));
        return;
      } else if (at + PACKET_BYTES > data.length) {
        this.#have = data.copy(this.#begun, 0, at);
        return;
      } else {
        this.#events.packet(data, at);
        at += PACKET_BYTES;
        this.#skip = stride - PACKET_BYTES;
      }
    }
  }

  #complete(data: Buffer, at: number, stride: number): number {
    const copied = data.copy(this.#begun, this.#have, at);
    this.#have += copied;
    if (this.#have === PACKET_BYTES) {
      this.#have = 0;
      this.#skip = stride - PACKET_BYTES;
      this.#events.packet(this.#begun, 0);
    }
    return at + copied;
  }

  /** Finds a sync byte that is followed by two more, each after a stride. */
  #search(more: Buffer): void {
    const data = this.#unknown.length === 0 ? more : Buffer.concat([this.#unknown, more]);
    this.#unknown = EMPTY;
    let at = data.indexOf(SYNC_BYTE);
    for (; at >= 0; at = data.indexOf(SYNC_BYTE, at + 1)) {
      const start = at;
      const stride = STRIDES.find((bytes) => isInStep(data, start, bytes));
      if (stride !== undefined) {
        this.#stride = stride;
        this.#read(at === 0 ? data : data.subarray(at), stride);
        return;
      }
      if (at + 2 * Math.max(...STRIDES) >= data.length) break;
    }
    if (at > 0 || (at < 0 && data.length > 0)) this.#events.garbage();
    if (at >= 0) this.#unknown = Buffer.from(data.subarray(at));
  }
}

function isInStep(data: Buffer, at: number, stride: number): boolean {
  return data[at + stride] === SYNC_BYTE && data[at + 2 * stride] === SYNC_BYTE;
}
