import { BitstreamError } from './bits.ts';

/** OBU types (AV1 6.2.2). */
export const OBU = Object.freeze({
  sequenceHeader: 1,
  temporalDelimiter: 2,
  frameHeader: 3,
  tileGroup: 4,
  metadata: 5,
  frame: 6,
  redundantFrameHeader: 7,
  tileList: 8,
  padding: 15,
});

/** A temporal unit has a few hundred OBUs at most, one for each tile of each layer. */
export const MAX_OBUS = 8192;

export interface Obu {
  readonly type: number;
  /** False when the OBU has no size field and runs to the end of the data. */
  readonly hasSize: boolean;
  /** Header, size and payload. */
  readonly data: Buffer;
  readonly payload: Buffer;
}

/** Splits low-overhead data into OBUs (AV1 5.2), as slices; one without a size is the last. @throws BitstreamError */
export function* obus(data: Buffer): IterableIterator<Obu> {
  let count = 0;
  for (let at = 0; at < data.length;) {
    if (++count > MAX_OBUS) throw new BitstreamError(`more than ${MAX_OBUS} OBUs`);
    const header = data[at] as number;
    if ((header & 0x80) !== 0) throw new BitstreamError('the forbidden bit of an OBU is set');
    const hasSize = (header & 2) !== 0;
    let start = at + ((header & 4) === 0 ? 1 : 2);
    let end = data.length;
    if (hasSize) {
      const size = readLeb128(data, start);
      start += size.length;
      end = start + size.value;
    }
    if (start > data.length || end > data.length) throw new BitstreamError('an OBU is longer than its data');
    yield { type: (header >> 3) & 15, hasSize, data: data.subarray(at, end), payload: data.subarray(start, end) };
    at = end;
  }
}

/** AV1 4.10.5, limited to 32 bits. */
function readLeb128(data: Buffer, at: number): { value: number; length: number } {
  let value = 0;
  for (let i = 0; i < 8; i++) {
    const byte = data[at + i];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) {
      if (value > 0xffffffff) break;
      return { value, length: i + 1 };
    }
  }
  throw new BitstreamError('the size of an OBU is malformed');
}

/** Writes a number in the fewest bytes (AV1 4.10.5). */
export function writeLeb128(value: number): Buffer {
  const bytes: number[] = [];
  for (let left = value; bytes.length === 0 || left > 0; left = Math.floor(left / 128)) {
    bytes.push((left % 128) | (left >= 128 ? 0x80 : 0));
  }
  return Buffer.from(bytes);
}
