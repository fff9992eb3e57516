import { BitReader, BitstreamError } from './bits.ts';
import type { H264Sps } from './h264-sps.ts';
import { unescapeNal } from './nal.ts';

/** Values of slice_type modulo 5 (H.264 table 7-6); the rest says whether all slices of the picture are alike. */
export const SLICE = Object.freeze({ p: 0, b: 1, i: 2, sp: 3, si: 4 });

/** Fields of a slice header that can be read without its parameter sets. */
export interface H264SliceStart {
  /** Address of the first macroblock; 0 in the first slice of a picture, when slices are in order. */
  readonly firstMb: number;
  /** One of SLICE. */
  readonly type: number;
  /** Id of its PPS. */
  readonly pps: number;
}

export interface H264SliceHead extends H264SliceStart {
  readonly frameNum: number;
  readonly field: 'frame' | 'top' | 'bottom';
  /** idr_pic_id; undefined for other than IDR pictures. */
  readonly idrId: number | undefined;
  /** pic_order_cnt_lsb; undefined when the SPS uses another pic_order_cnt_type. */
  readonly pocLsb: number | undefined;
}

const IDR = 5;
const MAX_MACROBLOCK = 139_263;
/** The fields take at most 20 bytes; emulation prevention adds some. */
const HEAD_BYTES = 32;

/** Reads the start of a slice or of its partition A, with NAL header (H.264 7.3.3). @throws BitstreamError */
export function parseSliceStart(nal: Buffer): H264SliceStart {
  return readStart(headOf(nal));
}

/**
 * Reads a slice header up to pic_order_cnt_lsb, with NAL header (H.264 7.3.3).
 * @param sps the SPS of the slice's PPS
 * @throws BitstreamError
 */
export function parseSliceHead(nal: Buffer, sps: H264Sps): H264SliceHead {
  const reader = headOf(nal);
  const start = readStart(reader);
  if (sps.separatePlanes) reader.skip(2);
  const frameNum = reader.read(sps.frameNumBits);
  let field: H264SliceHead['field'] = 'frame';
  if (sps.interlaced && reader.flag()) field = reader.flag() ? 'bottom' : 'top';
  const idrId = ((nal[0] as number) & 0x1f) === IDR ? reader.ueMax(0xffff, 'idr_pic_id') : undefined;
  const pocLsb = sps.pocLsbBits > 0 ? reader.read(sps.pocLsbBits) : undefined;
  return { ...start, frameNum, field, idrId, pocLsb };
}

function headOf(nal: Buffer): BitReader {
  const type = (nal[0] ?? 0) & 0x1f;
  if (type !== 1 && type !== 2 && type !== IDR) throw new BitstreamError('not a slice of H.264');
  return new BitReader(unescapeNal(nal.subarray(1, HEAD_BYTES)));
}

function readStart(reader: BitReader): H264SliceStart {
  const firstMb = reader.ueMax(MAX_MACROBLOCK, 'first_mb_in_slice');
  const type = reader.ueMax(9, 'slice_type') % 5;
  const pps = reader.ueMax(255, 'pic_parameter_set_id');
  return { firstMb, type, pps };
}
