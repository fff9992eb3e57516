import { BitReader, BitstreamError } from './bits.ts';

/** Header of an AC-3 or Enhanced AC-3 frame. */
export interface Ac3Frame {
  readonly codec: 'AC3' | 'EAC3';
  readonly samplerate: number;
  readonly channels: number;
  readonly samplesPerFrame: number;
  /** Size of the whole frame, header included. */
  readonly bytes: number;
}

const SYNC = 0x0b77;
const HEADER_BYTES = 8;
const SAMPLERATES = [48_000, 44_100, 32_000];
/** kbit/s by half of frmsizecod (ETSI TS 102 366, table 4.13). */
const BITRATES = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
/** Full bandwidth channels by acmod (table 4.3). */
const CHANNELS = [2, 1, 2, 3, 3, 4, 4, 5];
const BLOCKS = [1, 2, 3, 6];
const SAMPLES_PER_BLOCK = 256;
/** Highest bsid of AC-3, and highest of Enhanced AC-3 (annex E). */
const MAX_AC3 = 10;
const MAX_EAC3 = 16;

/** Reads the header at the start of a frame. @throws BitstreamError */
export function parseAc3Frame(frame: Buffer): Ac3Frame {
  const header = readAc3Frame(frame, 0);
  if (header === undefined) throw new BitstreamError('not an AC-3 frame of a known version and rate');
  return header;
}

/** Reads a frame header (ETSI TS 102 366 clause 4.3 and annex E.1.2). @returns undefined when none is at `at` */
export function readAc3Frame(data: Buffer, at: number): Ac3Frame | undefined {
  if (at + HEADER_BYTES > data.length || data.readUInt16BE(at) !== SYNC) return undefined;
  const bsid = (data[at + 5] as number) >> 3;
  if (bsid > MAX_EAC3) return undefined;
  const header = data.subarray(at, at + HEADER_BYTES);
  return bsid <= MAX_AC3 ? readPlain(header, bsid) : readEnhanced(header);
}

function readPlain(frame: Buffer, bsid: number): Ac3Frame | undefined {
  const bits = new BitReader(frame.subarray(4));
  const rate = SAMPLERATES[bits.read(2)];
  const size = bits.read(6);
  const kbits = BITRATES[size >> 1];
  if (rate === undefined || kbits === undefined) return undefined;
  bits.skip(5 + 3);
  const acmod = bits.read(3);
  if ((acmod & 1) !== 0 && acmod !== 1) bits.skip(2);
  if ((acmod & 4) !== 0) bits.skip(2);
  if (acmod === 2) bits.skip(2);
  const lfe = bits.read(1);
  // with 44.1 kHz the odd sizes have one word more
  const words = Math.floor((kbits * 1000 * 6 * SAMPLES_PER_BLOCK) / (rate * 16)) + (rate === 44_100 ? size & 1 : 0);
  const shift = Math.max(0, bsid - 8);
  return {
    codec: 'AC3',
    samplerate: rate >> shift,
    channels: (CHANNELS[acmod] as number) + lfe,
    samplesPerFrame: 6 * SAMPLES_PER_BLOCK,
    bytes: 2 * words,
  };
}

function readEnhanced(frame: Buffer): Ac3Frame | undefined {
  const bits = new BitReader(frame.subarray(2));
  bits.skip(2 + 3);
  const bytes = 2 * (bits.read(11) + 1);
  const fscod = bits.read(2);
  const second = bits.read(2);
  const samplerate = fscod === 3 ? (SAMPLERATES[second] ?? 0) / 2 : SAMPLERATES[fscod];
  if (!samplerate || bytes < HEADER_BYTES) return undefined;
  const blocks = fscod === 3 ? 6 : (BLOCKS[second] as number);
  const channels = (CHANNELS[bits.read(3)] as number) + bits.read(1);
  return { codec: 'EAC3', samplerate, channels, samplesPerFrame: blocks * SAMPLES_PER_BLOCK, bytes };
}
