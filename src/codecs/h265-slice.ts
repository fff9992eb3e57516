import { BitReader, BitstreamError } from './bits.ts';
import type { H265Pps } from './h265-pps.ts';
import type { H265Sps } from './h265-sps.ts';
import { unescapeNal } from './nal.ts';

/** slice_type (H.265 table 7-7). @public */
export const SLICE = Object.freeze({ b: 0, p: 1, i: 2 });

/** What a slice segment header says without its parameter sets. */
export interface H265SliceStart {
  /** It is the first one of its picture. */
  readonly isFirst: boolean;
  /** Id of its PPS. */
  readonly pps: number;
}

/** What the header of a picture's first slice segment says. */
export interface H265SliceHead {
  /** One of SLICE. */
  readonly type: number;
  /** slice_pic_order_cnt_lsb; 0 in IDR pictures. */
  readonly pocLsb: number;
}

const FIRST_IRAP = 16;
const LAST_IRAP = 23;
const IDR_W_RADL = 19;
const IDR_N_LP = 20;
const LAST_VCL = 31;
/** All that is read takes at most 12 bytes; emulation prevention adds some. */
const HEAD_BYTES = 24;

/**
 * Reads the start of a slice segment, NAL header included (H.265 7.3.6.1).
 * @throws BitstreamError
 */
export function parseSliceStart(nal: Buffer): H265SliceStart {
  return readStart(headOf(nal), typeOf(nal));
}

/**
 * Reads the header of a picture's first slice segment up to slice_pic_order_cnt_lsb, NAL header included
 * (H.265 7.3.6.1).
 * @public
 * @param pps the one that parseSliceStart() names, and the SPS that this names
 * @throws BitstreamError also when it is not the first one
 */
export function parseSliceHead(nal: Buffer, pps: H265Pps, sps: H265Sps): H265SliceHead {
  const type = typeOf(nal);
  const reader = headOf(nal);
  if (!readStart(reader, type).isFirst) throw new BitstreamError('not the first slice of an H.265 picture');
  reader.skip(pps.extraSliceBits);
  const sliceType = reader.ueMax(2, 'slice_type');
  if (pps.hasOutputFlag) reader.skip(1);
  if (sps.separatePlanes) reader.skip(2);
  const isIdr = type === IDR_W_RADL || type === IDR_N_LP;
  return { type: sliceType, pocLsb: isIdr ? 0 : reader.read(sps.pocLsbBits) };
}

function typeOf(nal: Buffer): number {
  return ((nal[0] ?? 0xff) >> 1) & 0x3f;
}

function headOf(nal: Buffer): BitReader {
  if (typeOf(nal) > LAST_VCL) throw new BitstreamError('not a slice of H.265');
  return new BitReader(unescapeNal(nal.subarray(2, HEAD_BYTES)));
}

function readStart(reader: BitReader, type: number): H265SliceStart {
  const isFirst = reader.flag();
  // no_output_of_prior_pics_flag
  if (type >= FIRST_IRAP && type <= LAST_IRAP) reader.skip(1);
  return { isFirst, pps: reader.ueMax(63, 'slice_pic_parameter_set_id') };
}
