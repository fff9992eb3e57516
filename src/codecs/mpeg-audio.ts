import { BitstreamError } from './bits.ts';

/** Header of an MPEG audio frame of layer II or III. */
export interface MpegAudioFrame {
  readonly layer: 2 | 3;
  readonly samplerate: number;
  readonly channels: number;
  readonly samplesPerFrame: number;
  /** Size of the whole frame, header included. */
  readonly bytes: number;
}

const SAMPLERATES = [44_100, 48_000, 32_000];
/** kbit/s by bitrate_index; index 0 (free format) is not accepted (ISO/IEC 11172-3 2.4.2.3, 13818-3 2.4.2.3). */
const BITRATES = {
  full: {
    2: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  },
  half: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const MPEG1 = 3;
const MPEG25 = 0;
const RESERVED_VERSION = 1;
const MONO = 3;
/** By the layer field. */
const LAYERS = [undefined, 3, 2, undefined] as const;

/** Reads the header at the start of a frame. @throws BitstreamError */
export function parseMpegAudioFrame(frame: Buffer): MpegAudioFrame {
  const header = readMpegAudioFrame(frame, 0);
  if (header === undefined) throw new BitstreamError('not an MPEG audio frame of layer II or III with a bit rate');
  return header;
}

/**
 * Reads a frame header (ISO/IEC 11172-3 2.4.1.3; 13818-3 for half rates, and their common extension to quarter rates).
 * @returns undefined when none is at `at`
 */
export function readMpegAudioFrame(data: Buffer, at: number): MpegAudioFrame | undefined {
  if (at + 4 > data.length || data.readUInt16BE(at) >> 5 !== 0x7ff) return undefined;
  const kind = data[at + 1] as number;
  const rates = data[at + 2] as number;
  const version = (kind >> 3) & 3;
  const layer = LAYERS[(kind >> 1) & 3];
  const rate = SAMPLERATES[(rates >> 2) & 3];
  if (version === RESERVED_VERSION || layer === undefined || rate === undefined) return undefined;
  const kbits = (version === MPEG1 ? BITRATES.full[layer] : BITRATES.half)[rates >> 4];
  if (!kbits) return undefined;
  const samplerate = version === MPEG1 ? rate : version === MPEG25 ? rate / 4 : rate / 2;
  const samplesPerFrame = layer === 2 || version === MPEG1 ? 1152 : 576;
  const padding = (rates >> 1) & 1;
  return {
    layer,
    samplerate,
    channels: (data[at + 3] as number) >> 6 === MONO ? 1 : 2,
    samplesPerFrame,
    bytes: Math.floor(((samplesPerFrame / 8) * kbits * 1000) / samplerate) + padding,
  };
}
