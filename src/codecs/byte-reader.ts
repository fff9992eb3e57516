import { BitstreamError } from './bits.ts';

/** Reads the fields of a configuration record. Every method throws BitstreamError past the end. */
export class ByteReader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  get left(): number {
    return this.#data.length - this.#at;
  }

  u8(): number {
    return this.bytes(1)[0] as number;
  }

  u16(): number {
    return this.bytes(2).readUInt16BE();
  }

  u32(): number {
    return this.bytes(4).readUInt32BE();
  }

  /** Reads a slice of `count` bytes. */
  bytes(count: number): Buffer {
    if (count > this.left) throw new BitstreamError('the record ends too early');
    this.#at += count;
    return this.#data.subarray(this.#at - count, this.#at);
  }
}
