import { BitstreamError } from './bits.ts';

/** What the header of an MPEG audio layer III frame tells. */
export interface Mp3Frame {
  readonly samplerate: number;
  readonly channels: number;
  readonly samplesPerFrame: number;
}

const SAMPLERATES = [44_100, 48_000, 32_000];
const MPEG1 = 3;
const MPEG25 = 0;
const RESERVED_VERSION = 1;
const LAYER_3 = 1;
const MONO = 3;

/**
 * Reads a frame header (ISO/IEC 11172-3 2.4.1.3; 13818-3 for the half rates, and their common extension to quarters).
 * @throws BitstreamError
 */
export function parseMp3Frame(frame: Buffer): Mp3Frame {
  if (frame.length < 4 || frame.readUInt16BE(0) >> 5 !== 0x7ff) throw new BitstreamError('not an MPEG audio frame');
  const version = (frame.readUInt8(1) >> 3) & 3;
  const layer = (frame.readUInt8(1) >> 1) & 3;
  const rate = SAMPLERATES[(frame.readUInt8(2) >> 2) & 3];
  if (version === RESERVED_VERSION || layer !== LAYER_3 || rate === undefined) {
    throw new BitstreamError('not an MPEG audio layer III frame');
  }
  return {
    samplerate: version === MPEG1 ? rate : version === MPEG25 ? rate / 4 : rate / 2,
    channels: frame.readUInt8(3) >> 6 === MONO ? 1 : 2,
    samplesPerFrame: version === MPEG1 ? 1152 : 576,
  };
}
