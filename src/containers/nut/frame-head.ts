import { crc32 } from '../crc32.ts';
import { NutError } from './error.ts';
import { FLAG } from './format.ts';
import { MAX_FRAME_BYTES, MAX_RESERVED, type FrameCode } from './frame-codes.ts';
import type { VlcReader } from './vlc.ts';

/** Header before a frame's data. */
export interface FrameHead {
  readonly flags: number;
  readonly stream: number;
  /** undefined when the time is `ptsDelta` after the last one of the stream. */
  readonly codedPts: number | undefined;
  readonly ptsDelta: number;
  /** Size of the frame, including the elision header. */
  readonly size: number;
  readonly headerIndex: number;
}

/**
 * Reads a frame head, whose frame code is the byte before the reader.
 * @returns undefined when the data ends within it
 * @throws NutError
 */
export function readFrameHead(fields: VlcReader, code: FrameCode): FrameHead | undefined {
  const start = fields.at - 1;
  let { flags, headerIndex, reserved } = code;
  if ((flags & FLAG.coded) !== 0) flags ^= fields.bounded(0xffff, 'the flags of a frame');
  if ((flags & FLAG.invalid) !== 0) throw new NutError('an invalid frame code');
  const stream = (flags & FLAG.streamId) === 0 ? code.stream : fields.v();
  const codedPts = (flags & FLAG.codedPts) === 0 ? undefined : fields.v();
  const msb = (flags & FLAG.sizeMsb) === 0 ? 0 : fields.v();
  if ((flags & FLAG.matchTime) !== 0) fields.s();
  if ((flags & FLAG.headerIndex) !== 0) headerIndex = fields.v();
  if ((flags & FLAG.reserved) !== 0) reserved = fields.bounded(MAX_RESERVED, 'the count of reserved fields');
  for (let left = reserved; left > 0; left--) fields.v();
  const end = fields.at;
  const checksum = (flags & FLAG.checksum) === 0 ? undefined : fields.u32();
  if (fields.short) return undefined;
  if (checksum !== undefined && crc32(fields.data, start, end) !== checksum) {
    throw new NutError('the checksum of a frame head is wrong');
  }
  const size = code.size + code.sizeMultiplier * msb;
  if (size > MAX_FRAME_BYTES) throw new NutError(`a frame of ${size} bytes`);
  return { flags, stream, codedPts, ptsDelta: code.ptsDelta, size, headerIndex };
}
