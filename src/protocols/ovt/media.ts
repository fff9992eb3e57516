import {
  HEADER_BYTES,
  MAX_PAYLOAD_BYTES,
  PAYLOAD,
  readInteger64,
  writeInteger64,
  writePacketHeader,
} from './packet.ts';

/** Bytes before the data of a frame (docs/compatibility.md#ovt). */
export const MEDIA_HEADER_BYTES = 36;

const FLAG = Object.freeze({ none: 1, key: 2 });

/** Header fields of a frame. Times are in the timebase of its track. */
export interface FrameInfo {
  readonly track: number;
  readonly pts: number;
  readonly dts: number;
  /** 0 when the source does not give it. */
  readonly duration: number;
  /** See MEDIA_TYPE. */
  readonly mediaType: number;
  readonly key: boolean;
  /** See BITSTREAM. */
  readonly bitstream: number;
  /** See PACKET_TYPE. */
  readonly packetType: number;
}

export interface Frame extends FrameInfo {
  readonly data: Buffer;
}

/** Reads a header of MEDIA_HEADER_BYTES; times that no number can represent exactly are NaN. */
export function readFrameInfo(head: Buffer): FrameInfo & { readonly size: number } {
  const duration = readInteger64(head, 20);
  return {
    track: head.readUInt32BE(0),
    pts: readInteger64(head, 4),
    dts: readInteger64(head, 12),
    duration: duration > 0 ? duration : 0,
    mediaType: head[28] as number,
    key: head[29] === FLAG.key,
    bitstream: head[30] as number,
    packetType: head[31] as number,
    size: head.readUInt32BE(32),
  };
}

/** Cuts the frames of one play session into packets. */
export class FrameWriter {
  readonly #session: number;
  #sequence = 0;

  /** @param session 32 bits that name the session in its packets */
  constructor(session: number) {
    this.#session = session;
  }

  /**
   * Writes the packets of a frame: headers and slices of its data, in the order in which they go on the wire. No data is copied.
   * @param pieces the data, which are `size` bytes together
   * @returns number of bytes written
   */
  write(info: FrameInfo, pieces: readonly Buffer[], size: number, put: (bytes: Buffer) => void): number {
    const packets = Math.ceil((MEDIA_HEADER_BYTES + size) / MAX_PAYLOAD_BYTES);
    const heads = Buffer.allocUnsafe(packets * HEADER_BYTES + MEDIA_HEADER_BYTES);
    let left = MEDIA_HEADER_BYTES + size;
    let room = this.#begin(heads, 0, info.pts, left);
    let at = HEADER_BYTES;
    writeFrameInfo(heads, at, info, size);
    at += MEDIA_HEADER_BYTES;
    put(heads.subarray(0, at));
    left -= MEDIA_HEADER_BYTES;
    room -= MEDIA_HEADER_BYTES;
    for (const piece of pieces) {
      for (let from = 0; from < piece.length;) {
        if (room === 0) {
          room = this.#begin(heads, at, info.pts, left);
          put(heads.subarray(at, at + HEADER_BYTES));
          at += HEADER_BYTES;
        }
        const end = Math.min(piece.length, from + room);
        put(from === 0 && end === piece.length ? piece : piece.subarray(from, end));
        left -= end - from;
        room -= end - from;
        from = end;
      }
    }
    return heads.length + size;
  }

  /** @returns bytes of payload in the packet */
  #begin(heads: Buffer, at: number, timestamp: number, left: number): number {
    const length = Math.min(left, MAX_PAYLOAD_BYTES);
    const header = {
      type: PAYLOAD.media,
      marker: length === left,
      sequence: this.#sequence,
      timestamp,
      session: this.#session,
    };
    writePacketHeader(heads, at, header, length);
    this.#sequence = (this.#sequence + 1) & 0xffff;
    return length;
  }
}

function writeFrameInfo(to: Buffer, at: number, info: FrameInfo, size: number): void {
  to.writeUInt32BE(info.track, at);
  writeInteger64(to, at + 4, info.pts);
  writeInteger64(to, at + 12, info.dts);
  writeInteger64(to, at + 20, info.duration);
  to[at + 28] = info.mediaType;
  to[at + 29] = info.key ? FLAG.key : FLAG.none;
  to[at + 30] = info.bitstream;
  to[at + 31] = info.packetType;
  to.writeUInt32BE(size, at + 32);
}
