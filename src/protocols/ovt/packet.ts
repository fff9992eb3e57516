import { OvtError } from './error.ts';

/** Payload types (docs/compatibility.md#ovt). */
export const PAYLOAD = Object.freeze({ request: 10, response: 20, media: 30 });

export const HEADER_BYTES = 18;
/** Payload of one packet; a packet has 32768 bytes at most. */
export const MAX_PAYLOAD_BYTES = 32_768 - HEADER_BYTES;

const VERSION = 1;
const MARKER = 0x20;
const RANGE_32 = 2 ** 32;

/** Header fields of a packet, except for its length. */
export interface PacketHeader {
  readonly type: number;
  /** Last packet of a message or media frame. */
  readonly marker: boolean;
  /** 16 bits. */
  readonly sequence: number;
  /** Milliseconds of the wall clock in messages, presentation time in media. */
  readonly timestamp: number;
  readonly session: number;
}

/** Receives packets while their bytes arrive, unbuffered. */
export interface PacketSink {
  begin(header: PacketHeader): void;
  /** The next bytes of the payload, a slice of the received data. */
  payload(bytes: Buffer): void;
  end(): void;
}

/** Writes a header of HEADER_BYTES at `at`. */
export function writePacketHeader(to: Buffer, at: number, header: PacketHeader, payloadBytes: number): void {
  to[at] = (VERSION << 6) | (header.marker ? MARKER : 0);
  to[at + 1] = header.type;
  to.writeUInt16BE(header.sequence, at + 2);
  writeInteger64(to, at + 4, header.timestamp);
  to.writeUInt32BE(header.session, at + 12);
  to.writeUInt16BE(payloadBytes, at + 16);
}

/** Splits a byte stream into packets. */
export class PacketReader {
  readonly #sink: PacketSink;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  /** Bytes of the header that have arrived. */
  #headed = 0;
  /** Bytes of the payload that are still to come. */
  #left = 0;

  constructor(sink: PacketSink) {
    this.#sink = sink;
  }

  /** @throws OvtError when the bytes are no packets; any error of the sink */
  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      if (this.#headed < HEADER_BYTES) {
        at += this.#take(bytes, at);
        if (this.#headed < HEADER_BYTES) return;
        this.#begin();
      } else {
        const piece = bytes.subarray(at, at + this.#left);
        at += piece.length;
        this.#left -= piece.length;
        this.#sink.payload(piece);
      }
      if (this.#left === 0) {
        this.#headed = 0;
        this.#sink.end();
      }
    }
  }

  #take(bytes: Buffer, at: number): number {
    const taken = bytes.copy(this.#header, this.#headed, at, at + HEADER_BYTES - this.#headed);
    this.#headed += taken;
    return taken;
  }

  #begin(): void {
    const header = this.#header;
    const [flags = 0, type = 0] = header;
    if (flags >> 6 !== VERSION) throw new OvtError(`packet version ${flags >> 6} is not ${VERSION}`);
    const length = header.readUInt16BE(16);
    if (length > MAX_PAYLOAD_BYTES) throw new OvtError(`a packet has ${length} bytes of payload`);
    this.#left = length;
    this.#sink.begin({
      type,
      marker: (flags & MARKER) !== 0,
      sequence: header.readUInt16BE(2),
      timestamp: readInteger64(header, 4),
      session: header.readUInt32BE(12),
    });
  }
}

/** Writes 64 bits in two's complement: OVT declares its times unsigned, but sends negative ones like that. */
export function writeInteger64(to: Buffer, at: number, value: number): void {
  to.writeInt32BE(Math.floor(value / RANGE_32), at);
  to.writeUInt32BE(value >>> 0, at + 4);
}

/** Returns NaN where a number cannot be exact (at and beyond 2^53). */
export function readInteger64(from: Buffer, at: number): number {
  const value = from.readInt32BE(at) * RANGE_32 + from.readUInt32BE(at + 4);
  return Number.isSafeInteger(value) ? value : NaN;
}
