import { BitReader, BitstreamError, tolerant } from './bits.ts';
import { ByteReader } from './byte-reader.ts';
import { renderedShape, type Colour, type Ratio } from './vui.ts';

export interface Vp9KeyFrame {
  readonly profile: number;
  readonly bitDepth: number;
  /** VP9 color_space; 7 is RGB. */
  readonly colourSpace: number;
  readonly fullRange: boolean;
  readonly subsamplingX: boolean;
  readonly subsamplingY: boolean;
  readonly width: number;
  readonly height: number;
  /** Sample aspect ratio by the render size; absent when square. */
  readonly sar?: Ratio;
}

/** VPCodecConfigurationRecord ("VP Codec ISO Media File Format Binding"), without the version and flags of the vpcC box. */
export interface VpcConfig extends Colour {
  readonly profile: number;
  /** Ten times the level; 0 unknown. */
  readonly level: number;
  readonly bitDepth: number;
  /** 0 4:2:0 vertical, 1 4:2:0 colocated, 2 4:2:2, 3 4:4:4. */
  readonly chromaSubsampling: number;
}

const SYNC_CODE = 0x498342;
const RGB = 7;
const UNSPECIFIED = 2;
/** H.273 matrix coefficients by VP9 color_space: unknown, 601, 709, SMPTE 170, SMPTE 240, 2020, reserved, RGB. */
const MATRIX = [UNSPECIFIED, 5, 1, 6, 7, 9, UNSPECIFIED, 0];
/** Level times ten by largest luma sample rate and picture size (VP9 levels, annex A). */
const LEVELS: readonly (readonly [level: number, samplesPerSecond: number, pictureSize: number])[] = [
  [10, 829_440, 36_864],
  [11, 2_764_800, 73_728],
  [20, 4_608_000, 122_880],
  [21, 9_216_000, 245_760],
  [30, 20_736_000, 552_960],
  [31, 36_864_000, 983_040],
  [40, 83_558_400, 2_228_224],
  [41, 160_432_128, 2_228_224],
  [50, 311_951_360, 8_912_896],
  [51, 588_251_136, 8_912_896],
  [52, 1_176_502_272, 8_912_896],
  [60, 1_176_502_272, 35_651_584],
  [61, 2_353_004_544, 35_651_584],
  [62, 4_706_009_088, 35_651_584],
];
const ASSUMED_FRAMERATE = 30;

/** Whether a frame, or the first frame of a superframe, is a key frame (VP9 6.2). */
export function isKey(frame: Buffer): boolean {
  if (frame.length === 0) return false;
  const first = frame[0] as number;
  if (first >> 6 !== 2) return false;
  // profile 3 has one more reserved bit before show_existing_frame and frame_type
  const shift = (first & 0x30) === 0x30 ? 1 : 2;
  return ((first >> shift) & 3) === 0;
}

/** Reads the uncompressed header of a key frame (VP9 6.2). @throws BitstreamError */
export function parseKeyFrame(frame: Buffer): Vp9KeyFrame {
  if (!isKey(frame)) throw new BitstreamError('not a VP9 key frame');
  const reader = new BitReader(frame);
  reader.skip(2);
  const profile = reader.read(1) + 2 * reader.read(1);
  reader.skip(profile === 3 ? 5 : 4);
  if (reader.read(24) !== SYNC_CODE) throw new BitstreamError('a VP9 key frame has no sync code');
  const bitDepth = profile >= 2 ? (reader.flag() ? 12 : 10) : 8;
  const colourSpace = reader.read(3);
  let fullRange = true;
  let subsamplingX = false;
  let subsamplingY = false;
  if (colourSpace !== RGB) {
    fullRange = reader.flag();
    const hasSubsampling = profile === 1 || profile === 3;
    subsamplingX = hasSubsampling ? reader.flag() : true;
    subsamplingY = hasSubsampling ? reader.flag() : true;
    if (hasSubsampling) reader.skip(1);
  } else if (profile === 1 || profile === 3) {
    reader.skip(1);
  } else {
    throw new BitstreamError('a VP9 key frame is RGB in a profile without it');
  }
  const width = reader.read(16) + 1;
  const height = reader.read(16) + 1;
  const sar = tolerant(() => readShape(reader, { width, height }));
  return { ...(sar && { sar }), profile, bitDepth, colourSpace, fullRange, subsamplingX, subsamplingY, width, height };
}

/** Reads render_size() (VP9 6.2). */
function readShape(reader: BitReader, size: { width: number; height: number }): Ratio | undefined {
  if (!reader.flag()) return undefined;
  return renderedShape(size, { width: reader.read(16) + 1, height: reader.read(16) + 1 });
}

/** Reads a configuration record, with or without the four bytes of box version and flags before it. @throws BitstreamError */
export function parseVpcConfig(record: Buffer): VpcConfig {
  const reader = new ByteReader(record);
  // a record's third byte begins with the bit depth, which is never 0
  if (record.length >= 12 && record.readUInt32BE() === 0x01000000) reader.bytes(4);
  const profile = reader.u8();
  const level = reader.u8();
  const format = reader.u8();
  const [primaries, transfer, matrix] = [reader.u8(), reader.u8(), reader.u8()];
  const bitDepth = format >> 4;
  if (profile > 3 || (bitDepth !== 8 && bitDepth !== 10 && bitDepth !== 12)) {
    throw new BitstreamError('not a VP9 configuration record');
  }
  const chromaSubsampling = (format >> 1) & 7;
  return { profile, level, bitDepth, chromaSubsampling, fullRange: (format & 1) !== 0, primaries, transfer, matrix };
}

/** Writes a configuration record of 8 bytes, without the version and flags of the vpcC box. */
export function buildVpcConfig(config: VpcConfig): Buffer {
  const format = (config.bitDepth << 4) | (config.chromaSubsampling << 1) | Number(config.fullRange);
  return Buffer.of(config.profile, config.level, format, config.primaries, config.transfer, config.matrix, 0, 0);
}

/** Builds the configuration of a stream that has none. @param framerate frames per second, 0 when unknown */
export function vpcConfigOf(frame: Vp9KeyFrame, framerate: number): VpcConfig {
  const size = frame.width * frame.height;
  const rate = size * (framerate > 0 ? framerate : ASSUMED_FRAMERATE);
  const level = LEVELS.find(([, maxRate, maxSize]) => rate <= maxRate && size <= maxSize)?.[0] ?? 0;
  return {
    profile: frame.profile,
    level,
    bitDepth: frame.bitDepth,
    chromaSubsampling: frame.subsamplingX ? (frame.subsamplingY ? 1 : 2) : 3,
    fullRange: frame.fullRange,
    primaries: UNSPECIFIED,
    transfer: UNSPECIFIED,
    matrix: MATRIX[frame.colourSpace] as number,
  };
}

/** Codec `vp09.PP.LL.DD` of the ISO binding, without colour: players ask for no more. */
export function codecString({ profile, level, bitDepth }: Pick<VpcConfig, 'profile' | 'level' | 'bitDepth'>): string {
  const two = (value: number) => String(value).padStart(2, '0');
  return `vp09.${two(profile)}.${two(level)}.${two(bitDepth)}`;
}
