import { NutError } from './error.ts';

/** Most bytes of a number, with seven bits in each: 64 bits are enough for any. */
const MAX_BYTES = 10;

/**
 * Writes a number (`v`: seven bits a byte, highest first) of at most 8 bytes.
 * @param value an integer from 0 to 2^53 - 1
 * @returns the end
 */
export function writeV(data: Buffer, value: number, at: number): number {
  let size = 1;
  for (let left = value; left >= 128; left = Math.floor(left / 128)) size++;
  let left = value;
  for (let i = size - 1; i >= 0; i--) {
    data[at + i] = (left % 128) | (i === size - 1 ? 0 : 0x80);
    left = Math.floor(left / 128);
  }
  return at + size;
}

/** Some numbers (`v`) in a buffer of their own. */
export function v(...values: number[]): Buffer {
  const data = Buffer.alloc(values.length * 8);
  let at = 0;
  for (const value of values) at = writeV(data, value, at);
  return data.subarray(0, at);
}

/** Bytes after their count (`vb`). */
export function vb(data: Buffer): Buffer {
  return Buffer.concat([v(data.length), data]);
}

/**
 * Reads the fields of NUT. Past the end everything reads as 0 and `short` is set, so that callers check for missing data
 * once, after the last field.
 */
export class VlcReader {
  data: Buffer = Buffer.alloc(0);
  at = 0;
  end = 0;
  short = false;

  /** Continues in `data`, from `at` to `end`. */
  open(data: Buffer, at: number, end: number): this {
    this.data = data;
    this.at = at;
    this.end = end;
    this.short = false;
    return this;
  }

  /** Reads an unsigned number, inexact above 2^53. @throws NutError when it is endless */
  v(): number {
    let value = 0;
    for (let i = 0; i < MAX_BYTES; i++) {
      if (this.at >= this.end) return this.#past();
      const byte = this.data[this.at++] as number;
      value = value * 128 + (byte & 0x7f);
      if (byte < 0x80) return value;
    }
    throw new NutError('a number is too long');
  }

  /** Reads a signed number, inexact beyond 2^53. @throws NutError when it is endless */
  s(): number {
    const value = this.v();
    return value % 2 === 0 ? 0 - value / 2 : (value + 1) / 2;
  }

  /** Reads an unsigned number of at most `limit`. @param what its name in the error @throws NutError */
  bounded(limit: number, what: string): number {
    const value = this.v();
    if (value > limit) throw new NutError(`${what} is ${value}, more than ${limit}`);
    return value;
  }

  /** Reads bytes after their count, as a slice. @throws NutError for more than `limit` */
  vb(limit: number, what: string): Buffer {
    const length = this.bounded(limit, `the length of ${what}`);
    if (this.at + length > this.end) return this.data.subarray(0, this.#past());
    this.at += length;
    return this.data.subarray(this.at - length, this.at);
  }

  u32(): number {
    if (this.at + 4 > this.end) return this.#past();
    this.at += 4;
    return this.data.readUInt32BE(this.at - 4);
  }

  #past(): number {
    this.at = this.end;
    this.short = true;
    return 0;
  }
}
