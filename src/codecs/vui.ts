import type { BitReader } from './bits.ts';

export interface Ratio {
  readonly num: number;
  readonly den: number;
}

/** Code points of ITU-T H.273; 2 is unspecified. */
export interface Colour {
  readonly primaries: number;
  readonly transfer: number;
  readonly matrix: number;
  readonly fullRange: boolean;
}

const UNSPECIFIED = 2;
const BT709 = 1;
/** Transfer characteristics: SMPTE ST 2084, and the hybrid log-gamma of ARIB STD-B67. */
const PQ = 16;
const HLG = 18;

/** Limit of the sample aspect ratio, and of its inverse: the highest in a table of a codec is 80:33. */
const MAX_RATIO = 4;
/** A ratio this near to 1 comes from rounded sizes. */
const ROUNDED = 0.05;

/**
 * Reduces a sample aspect ratio to lowest terms; undefined for square samples, and for ratios that no camera has: scaling to
 * them would make huge pictures.
 */
export function sampleShape({ num, den }: Ratio): Ratio | undefined {
  const ratio = num / den;
  if (ratio > MAX_RATIO || 1 / ratio > MAX_RATIO || Math.abs(ratio - 1) < ROUNDED) return undefined;
  const divisor = greatestDivisor(num, den);
  return { num: num / divisor, den: den / divisor };
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Sample aspect ratio of a stream that gives its coded size and its render size (VP9, AV1). */
export function renderedShape(coded: Size, shown: Size): Ratio | undefined {
  return sampleShape({ num: shown.width * coded.height, den: shown.height * coded.width });
}

/** Both numbers are above 0. */
function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** Whether two sample aspect ratios are equal; undefined for square samples. */
export function isSameShape(one: Ratio | undefined, other: Ratio | undefined): boolean {
  return one?.num === other?.num && one?.den === other?.den;
}

/** Display properties of video besides its size. */
export interface Look {
  /** In lowest terms; absent when square or unknown. */
  readonly sar?: Ratio;
  readonly colour?: Colour;
}

/** Keeps the known properties of a look, and nothing else. */
export function lookOf({ sar, colour }: Partial<{ readonly [K in keyof Look]: Look[K] | undefined }>): Look {
  const shape = sar && { sar };
  if (colour === undefined) return { ...shape };
  const { primaries, transfer, matrix, fullRange } = colour;
  const isSpecified = fullRange || [primaries, transfer, matrix].some((code) => code !== UNSPECIFIED);
  return { ...shape, ...(isSpecified && { colour: { primaries, transfer, matrix, fullRange } }) };
}

/** Whether colour is what players assume by default, as far as it is specified: BT.709 in limited range. */
export function isUsual({ primaries, transfer, matrix, fullRange }: Colour): boolean {
  return !fullRange && [primaries, transfer, matrix].every((code) => code === BT709 || code === UNSPECIFIED);
}

/** Value of VIDEO-RANGE in HLS (draft-pantos-hls-rfc8216bis, 4.4.6.2). */
export type VideoRange = 'SDR' | 'HLG' | 'PQ';

/** Range by transfer_characteristics; SDR when unknown. */
export function videoRange(colour: Colour | undefined): VideoRange {
  if (colour?.transfer === PQ) return 'PQ';
  return colour?.transfer === HLG ? 'HLG' : 'SDR';
}

/** By aspect_ratio_idc, the same for H.264 (table E-1) and H.265 (table E.1); 0 is unspecified. */
const SAMPLE_ASPECT_RATIOS: readonly (readonly [number, number])[] = [
  [0, 0],
  [1, 1],
  [12, 11],
  [10, 11],
  [16, 11],
  [40, 33],
  [24, 11],
  [20, 11],
  [32, 11],
  [80, 33],
  [18, 11],
  [15, 11],
  [64, 33],
  [160, 99],
  [4, 3],
  [3, 2],
  [2, 1],
];
const EXTENDED_SAR = 255;

/** First fields of the VUI of H.264 (E.1.1) and of H.265 (E.2.1). */
export interface VuiHead {
  /** 1:1 when unspecified. */
  readonly sar: Ratio;
  readonly colour: Colour | undefined;
}

/** Reads from aspect_ratio_info_present_flag to the chroma sample location. */
export function readVuiHead(reader: BitReader): VuiHead {
  const sar = readSar(reader);
  if (reader.flag()) reader.skip(1);
  const colour = readColour(reader);
  if (reader.flag()) {
    reader.ueMax(5, 'chroma_sample_loc_type_top_field');
    reader.ueMax(5, 'chroma_sample_loc_type_bottom_field');
  }
  return { sar, colour };
}

function readSar(reader: BitReader): Ratio {
  let [num, den] = [1, 1];
  if (reader.flag()) {
    const idc = reader.read(8);
    [num, den] = idc === EXTENDED_SAR ? [reader.read(16), reader.read(16)] : (SAMPLE_ASPECT_RATIOS[idc] ?? [0, 0]);
  }
  return num > 0 && den > 0 ? { num, den } : { num: 1, den: 1 };
}

function readColour(reader: BitReader): Colour | undefined {
  if (!reader.flag()) return undefined;
  reader.skip(3);
  const fullRange = reader.flag();
  if (!reader.flag()) return { primaries: 2, transfer: 2, matrix: 2, fullRange };
  return { primaries: reader.read(8), transfer: reader.read(8), matrix: reader.read(8), fullRange };
}
