/** Malformed data from outside. Has no stack trace: a client could force one every few bytes, which costs more than all parsing. */
export class BitstreamError extends Error {
  constructor(message: string) {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = limit;
    this.name = 'BitstreamError';
  }
}

/**
 * Calls `read`, and returns undefined when its data is malformed. For information that decoding does not need (VUI, SEI):
 * decoders play streams in which it is wrong, so Kiln passes them on.
 */
export function tolerant<Info>(read: () => Info): Info | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof BitstreamError) return undefined;
    throw error;
  }
}

/** Reads bits, most significant first. Every method throws BitstreamError past the end. */
export class BitReader {
  readonly #data: Uint8Array;
  readonly #end: number;
  #position = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
    this.#end = data.length * 8;
  }

  get bitsLeft(): number {
    return this.#end - this.#position;
  }

  get position(): number {
    return this.#position;
  }

  /** Reads an unsigned number of `count` bits, 0 to 32. */
  read(count: number): number {
    if (count > this.bitsLeft) throw new BitstreamError('the data ends too early');
    let value = 0;
    let left = count;
    while (left > 0) {
      const byte = this.#data[this.#position >> 3] as number;
      const free = 8 - (this.#position & 7);
      const take = Math.min(free, left);
      value = value * 2 ** take + ((byte >> (free - take)) & ((1 << take) - 1));
      this.#position += take;
      left -= take;
    }
    return value;
  }

  flag(): boolean {
    return this.read(1) === 1;
  }

  skip(count: number): void {
    if (count > this.bitsLeft) throw new BitstreamError('the data ends too early');
    this.#position += count;
  }

  /** Reads unsigned Exp-Golomb, up to 2^32 - 2 (H.264 9.1). */
  ue(): number {
    let zeros = 0;
    while (!this.flag()) if (++zeros > 31) throw new BitstreamError('an Exp-Golomb code is too long');
    return 2 ** zeros - 1 + this.read(zeros);
  }

  /** Reads signed Exp-Golomb (H.264 9.1.1). */
  se(): number {
    const code = this.ue();
    return code % 2 === 1 ? (code + 1) / 2 : code === 0 ? 0 : -code / 2;
  }

  /** Reads unsigned Exp-Golomb of at most `max`. @param what name of the value in the error */
  ueMax(max: number, what: string): number {
    const value = this.ue();
    if (value > max) throw new BitstreamError(`${what} is ${value}, more than ${max}`);
    return value;
  }

  /** Skips to the next byte boundary. */
  align(): void {
    this.#position = (this.#position + 7) & ~7;
  }
}

/** Writes bits, most significant first. */
export class BitWriter {
  readonly #bytes: number[] = [];
  #bits = 0;

  /** Writes an unsigned number in `count` bits, 0 to 32. */
  write(value: number, count: number): this {
    for (let bit = count - 1; bit >= 0; bit--) {
      const index = this.#bits >> 3;
      if (index === this.#bytes.length) this.#bytes.push(0);
      const set = Math.floor(value / 2 ** bit) % 2;
      this.#bytes[index] = (this.#bytes[index] as number) | (set << (7 - (this.#bits & 7)));
      this.#bits++;
    }
    return this;
  }

  flag(value: boolean): this {
    return this.write(value ? 1 : 0, 1);
  }

  /** Writes unsigned Exp-Golomb. */
  ue(value: number): this {
    const length = Math.floor(Math.log2(value + 1));
    return this.write(0, length).write(value + 1, length + 1);
  }

  /** Writes signed Exp-Golomb. */
  se(value: number): this {
    return this.ue(value > 0 ? value * 2 - 1 : -value * 2);
  }

  /** Pads with zeros to the next byte boundary. */
  align(): this {
    this.#bits = this.#bytes.length * 8;
    return this;
  }

  /** Returns the bytes, the last one padded with zeros. */
  finish(): Buffer {
    return Buffer.from(this.#bytes);
  }
}
