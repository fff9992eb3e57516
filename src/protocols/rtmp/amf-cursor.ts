import { RtmpError } from './error.ts';

const MAX_DEPTH = 16;
const MAX_VALUES = 4096;

/** Reading position in an AMF body, with the limits that keep hostile bodies cheap. */
export class AmfCursor {
  readonly data: Buffer;
  position = 0;
  #values = 0;
  #depth = 0;

  constructor(data: Buffer) {
    this.data = data;
  }

  get left(): number {
    return this.data.length - this.position;
  }

  /** Moves past `bytes` and returns where they began. */
  take(bytes: number): number {
    const start = this.position;
    if (bytes > this.data.length - start) throw new RtmpError('AMF value is cut off');
    this.position = start + bytes;
    return start;
  }

  u8(): number {
    return this.data.readUInt8(this.take(1));
  }

  u16(): number {
    return this.data.readUInt16BE(this.take(2));
  }

  u32(): number {
    return this.data.readUInt32BE(this.take(4));
  }

  double(): number {
    return this.data.readDoubleBE(this.take(8));
  }

  utf8(bytes: number): string {
    const start = this.take(bytes);
    return this.data.toString('utf8', start, start + bytes);
  }

  /** Counts one value and holds the nesting while `read` runs. */
  nested<T>(read: () => T): T {
    if (++this.#values > MAX_VALUES) throw new RtmpError(`AMF body has more than ${MAX_VALUES} values`);
    if (++this.#depth > MAX_DEPTH) throw new RtmpError(`AMF body is nested deeper than ${MAX_DEPTH}`);
    try {
      return read();
    } finally {
      this.#depth--;
    }
  }
}
