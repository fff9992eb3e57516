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

/** What the VUI of H.264 (E.1.1) and of H.265 (E.2.1) begin with. */
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
