import { BitReader, BitstreamError } from './bits.ts';

/** Format of a FLAC stream, and what limits its frames. */
export interface FlacFormat {
  readonly samplerate: number;
  readonly channels: number;
  readonly bitsPerSample: number;
  /** Samples of the longest frame. */
  readonly maxBlock: number;
}

const MARKER = Buffer.from('fLaC');
const STREAM_INFO = 0;
const STREAM_INFO_BYTES = 34;
const BLOCK_HEAD_BYTES = 4;
/** Marks the last metadata block; the other bits are its type. */
const LAST_BLOCK = 0x80;
const MIN_BLOCK = 16;

/**
 * Finds STREAMINFO (RFC 9639, 8.2), the canonical configuration of a track, in what a stream begins with: it alone, as a metadata block
 * (8.1), or after the marker `fLaC`. Further metadata are left out.
 * @throws BitstreamError
 */
export function streamInfoOf(header: Buffer): Buffer {
  const block = header.subarray(0, MARKER.length).equals(MARKER) ? header.subarray(MARKER.length) : header;
  if (block.length === STREAM_INFO_BYTES) return block;
  const type = (block[0] ?? LAST_BLOCK) & ~LAST_BLOCK;
  const info = block.subarray(BLOCK_HEAD_BYTES, BLOCK_HEAD_BYTES + STREAM_INFO_BYTES);
  if (
    block.length < BLOCK_HEAD_BYTES + STREAM_INFO_BYTES ||
    type !== STREAM_INFO ||
    block.readUIntBE(1, 3) !== STREAM_INFO_BYTES
  )
    throw new BitstreamError('a FLAC header does not begin with its stream information');
  return info;
}

/** Builds the metadata block of STREAMINFO, as the only one. */
export function streamInfoBlock(config: Buffer): Buffer {
  return Buffer.concat([Buffer.of(LAST_BLOCK | STREAM_INFO, 0, 0, STREAM_INFO_BYTES), config]);
}

/** Builds what a FLAC stream begins with: marker and STREAMINFO. */
export function buildFlacHeader(config: Buffer): Buffer {
  return Buffer.concat([MARKER, streamInfoBlock(config)]);
}

/** Reads STREAMINFO (RFC 9639, 8.2). @throws BitstreamError */
export function parseStreamInfo(config: Buffer): FlacFormat {
  if (config.length !== STREAM_INFO_BYTES) throw new BitstreamError('FLAC stream information of another size');
  const bits = new BitReader(config);
  bits.skip(16);
  const maxBlock = bits.read(16);
  bits.skip(24 + 24);
  const samplerate = bits.read(20);
  const channels = bits.read(3) + 1;
  const bitsPerSample = bits.read(5) + 1;
  if (samplerate === 0 || bitsPerSample < 4 || maxBlock < MIN_BLOCK)
    throw new BitstreamError('FLAC stream information without a valid format');
  return { samplerate, channels, bitsPerSample, maxBlock };
}

/** Sync code and the reserved bit that follows it, of which the last one, the blocking strategy, is left out. */
const SYNC = 0xfff8;
const SYNC_MASK = 0xfffe;
/** Codes of block sizes that are stored after the number of the frame, with their bytes. */
const STORED_SIZE: Readonly<Record<number, number>> = { 6: 1, 7: 2 };
/** Longest number of a frame or sample. */
const MAX_NUMBER_BYTES = 7;

/** Samples of a frame, by its header (RFC 9639, 9.1). @throws BitstreamError */
export function flacSamples(frame: Buffer): number {
  const [, , sizes, shape, number] = frame;
  if (
    sizes === undefined ||
    shape === undefined ||
    number === undefined ||
    (frame.readUInt16BE(0) & SYNC_MASK) !== SYNC
  )
    throw new BitstreamError('not a FLAC frame');
  const code = sizes >> 4;
  if (code === 1) return 192;
  if (code >= 2 && code <= 5) return 144 << code;
  if (code >= 8) return 1 << code;
  const bytes = STORED_SIZE[code];
  // as in UTF-8: as many bytes as there are ones in front, and one byte without any
  const ones = Math.clz32(~(number << 24));
  const at = 4 + Math.max(1, ones);
  if (bytes === undefined || ones === 1 || ones > MAX_NUMBER_BYTES || frame.length < at + bytes)
    throw new BitstreamError('a FLAC frame without a valid size');
  return frame.readUIntBE(at, bytes) + 1;
}
