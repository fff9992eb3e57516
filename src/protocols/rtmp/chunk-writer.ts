import { encodeNumber, MessageType } from './message.ts';

const DEFAULT_CHUNK_SIZE = 128;
const EXTENDED = 0xffffff;
const MAX_HEADER_BYTES = 18;

/** Chunk stream ids, as encoders expect them. */
export const ChunkStream = { Control: 2, Command: 3, Audio: 4, Status: 5, Video: 6 } as const;

/** Cuts outgoing messages into chunks (RTMP specification section 5.3). */
export class ChunkWriter {
  #chunkSize = DEFAULT_CHUNK_SIZE;

  /** The SetChunkSize message; messages made after it use the new size. */
  setChunkSize(size: number): Buffer[] {
    const message = this.message(ChunkStream.Control, MessageType.SetChunkSize, 0, 0, encodeNumber(size));
    this.#chunkSize = size;
    return message;
  }

  /**
   * One message as the pieces to write, in order; slices of `payload`, no copies.
   * @param chunkStream 2 to 63
   * @param timestamp milliseconds, modulo 2^32
   * @param payload the message's bytes, in one piece or several
   */
  message(chunkStream: number, type: number, streamId: number, timestamp: number, ...payload: Buffer[]): Buffer[] {
    const time = timestamp >>> 0;
    const extended = time >= EXTENDED;
    const head = Buffer.allocUnsafe(MAX_HEADER_BYTES);
    head[0] = chunkStream;
    head.writeUIntBE(extended ? EXTENDED : time, 1, 3);
    head.writeUIntBE(
      payload.reduce((sum, { length }) => sum + length, 0),
      4,
      3,
    );
    head[7] = type;
    head.writeUInt32LE(streamId, 8);
    if (extended) head.writeUInt32BE(time, 12);
    const next = Buffer.allocUnsafe(5);
    next[0] = 0xc0 | chunkStream;
    next.writeUInt32BE(time, 1);
    return this.#chunks(head.subarray(0, extended ? 16 : 12), next.subarray(0, extended ? 5 : 1), payload);
  }

  /** @param separator in front of every chunk but the first */
  #chunks(head: Buffer, separator: Buffer, payload: readonly Buffer[]): Buffer[] {
    const out = [head];
    let room = this.#chunkSize;
    for (const piece of payload) {
      for (let at = 0; at < piece.length;) {
        if (room === 0) {
          out.push(separator);
          room = this.#chunkSize;
        }
        const part = piece.subarray(at, at + room);
        out.push(part);
        room -= part.length;
        at += part.length;
      }
    }
    return out;
  }
}
