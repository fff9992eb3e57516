import { NutError } from './error.ts';
import { FLAG, N } from './format.ts';
import type { VlcReader } from './vlc.ts';

export interface FrameCode {
  readonly flags: number;
  readonly ptsDelta: number;
  readonly sizeMultiplier: number;
  readonly stream: number;
  readonly size: number;
  /** Count of reserved fields in the frame's head. */
  readonly reserved: number;
  readonly headerIndex: number;
}

export const MAX_FRAME_BYTES = 32 * 1024 * 1024;
export const MAX_RESERVED = 256;
const CODES = 256;

/**
 * Reads the table of the main header: runs of codes whose sizes count up.
 * @throws NutError
 */
export function readFrameCodes(reader: VlcReader, streams: number): FrameCode[] {
  const codes: FrameCode[] = [];
  const run = { ptsDelta: 0, sizeMultiplier: 1, stream: 0, headerIndex: 0 };
  while (codes.length < CODES) {
    const flags = reader.bounded(0xffff, 'the flags of a frame code');
    const fields = reader.bounded(MAX_RESERVED, 'the count of fields of a frame code');
    if (fields > 0) run.ptsDelta = reader.s();
    if (fields > 1) run.sizeMultiplier = reader.bounded(MAX_FRAME_BYTES, 'a size multiplier');
    if (fields > 2) run.stream = reader.bounded(streams - 1, 'the stream of a frame code');
    const size = fields > 3 ? reader.bounded(MAX_FRAME_BYTES, 'the size of a frame code') : 0;
    const reserved = fields > 4 ? reader.bounded(MAX_RESERVED, 'the count of reserved fields') : 0;
    const count = fields > 5 ? reader.v() : run.sizeMultiplier - size;
    // match_time_delta serves seeking
    if (fields > 6) reader.s();
    if (fields > 7) run.headerIndex = reader.v();
    for (let i = 8; i < fields; i++) reader.v();
    if (reader.short || count < 1 || count > CODES - codes.length)
      throw new NutError('the frame code table is malformed');
    for (let i = 0; i < count && codes.length < CODES; i++) {
      if (codes.length === N) codes.push({ ...run, flags: FLAG.invalid, size: 0, reserved: 0 });
      codes.push({ ...run, flags, size: size + i, reserved });
    }
  }
  return codes;
}
