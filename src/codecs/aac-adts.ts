import { CHANNELS, SAMPLERATES } from './aac-tables.ts';
import { BitReader, BitstreamError } from './bits.ts';

/** An ADTS header (ISO/IEC 14496-3 1.A.2.2). */
export interface AdtsHeader {
  /** Audio object type, 1 to 4. */
  readonly objectType: number;
  readonly samplerate: number;
  /** 0 where a program config element in the frame gives the channels. */
  readonly channelConfiguration: number;
  readonly channels: number;
  /** 7, or 9 with a checksum. */
  readonly headerLength: number;
  /** Header included. */
  readonly frameLength: number;
  readonly blocks: number;
}

const SYNC = 0xfff;
const HEADER_BYTES = 7;
const CHECKSUM_BYTES = 2;
const MAX_FRAME_LENGTH = 0x1fff;
const VARIABLE_BITRATE = 0x7ff;

/** Bytes of the frame whose header is at `at`; 0 where none is, undefined when less than a header is left. */
export function adtsBytes(data: Buffer, at: number): number | undefined {
  if (at + HEADER_BYTES > data.length) return undefined;
  const flags = data[at + 1] as number;
  // the layer is 0; the checksum flag may be either
  if (data[at] !== 0xff || (flags & 0xf6) !== 0xf0 || SAMPLERATES[((data[at + 2] as number) >> 2) & 15] === undefined)
    return 0;
  const bytes = (data.readUIntBE(at + 3, 3) >> 5) & MAX_FRAME_LENGTH;
  return bytes < ((flags & 1) === 0 ? HEADER_BYTES + CHECKSUM_BYTES : HEADER_BYTES) ? 0 : bytes;
}

/** Reads the header at the start of `data`. @throws BitstreamError */
export function parseAdtsHeader(data: Buffer): AdtsHeader {
  const reader = new BitReader(data.subarray(0, HEADER_BYTES));
  if (reader.read(12) !== SYNC) throw new BitstreamError('not an ADTS header');
  reader.skip(1);
  if (reader.read(2) !== 0) throw new BitstreamError('an ADTS header of another layer');
  const headerLength = reader.flag() ? HEADER_BYTES : HEADER_BYTES + CHECKSUM_BYTES;
  const objectType = reader.read(2) + 1;
  const samplerate = SAMPLERATES[reader.read(4)];
  if (samplerate === undefined) throw new BitstreamError('a reserved AAC sampling rate');
  reader.skip(1);
  const channelConfiguration = reader.read(3);
  reader.skip(4);
  const frameLength = reader.read(13);
  if (frameLength < headerLength) throw new BitstreamError('an ADTS frame is shorter than its header');
  reader.skip(11);
  const blocks = reader.read(2) + 1;
  const channels = CHANNELS[channelConfiguration] as number;
  return { objectType, samplerate, channelConfiguration, channels, headerLength, frameLength, blocks };
}

/**
 * Splits whole ADTS data into frames, each payload a slice.
 * @public
 * @throws BitstreamError when a frame is cut off or holds more than one raw data block
 */
export function* adtsFrames(data: Buffer): IterableIterator<{ header: AdtsHeader; payload: Buffer }> {
  for (let at = 0; at < data.length;) {
    const header = parseAdtsHeader(data.subarray(at));
    const end = at + header.frameLength;
    if (end > data.length) throw new BitstreamError('an ADTS frame is cut off');
    if (header.blocks > 1) throw new BitstreamError('an ADTS frame holds several raw data blocks');
    yield { header, payload: data.subarray(at + header.headerLength, end) };
    at = end;
  }
}

/** Bytes of a raw frame with its header. @throws BitstreamError when the length field is too small for it */
export function adtsLength(payloadLength: number): number {
  const length = payloadLength + HEADER_BYTES;
  if (length > MAX_FRAME_LENGTH) throw new BitstreamError('ADTS cannot carry this AAC frame');
  return length;
}

/**
 * Builds the 7-byte header of one raw frame.
 * @public
 * @param payloadLength bytes of the raw frame
 * @throws BitstreamError when ADTS cannot express the format or the length
 */
export function buildAdtsHeader(
  format: Pick<AdtsHeader, 'objectType' | 'samplerate' | 'channelConfiguration'>,
  payloadLength: number,
): Buffer {
  const { objectType, samplerate, channelConfiguration } = format;
  const rate = SAMPLERATES.indexOf(samplerate);
  const length = adtsLength(payloadLength);
  if (objectType < 1 || objectType > 4 || rate < 0 || channelConfiguration > 7) {
    throw new BitstreamError('ADTS cannot carry AAC of this kind');
  }
  return Buffer.of(
    0xff,
    0xf1,
    ((objectType - 1) << 6) | (rate << 2) | (channelConfiguration >> 2),
    ((channelConfiguration & 3) << 6) | (length >> 11),
    (length >> 3) & 0xff,
    ((length & 7) << 5) | (VARIABLE_BITRATE >> 6),
    (VARIABLE_BITRATE & 0x3f) << 2,
  );
}
