import { BitReader, BitstreamError } from './bits.ts';
import { unescapeNal } from './nal.ts';

/** Fields of a slice segment header that can be read without its parameter sets. */
export interface H265SliceStart {
  /** Whether this is the first segment of its picture. */
  readonly isFirst: boolean;
  /** Id of its PPS. */
  readonly pps: number;
}

const FIRST_IRAP = 16;
const LAST_IRAP = 23;
const LAST_VCL = 31;
/** The fields take at most 2 bytes; emulation prevention adds some. */
const HEAD_BYTES = 8;

/** Reads the start of a slice segment with its NAL header (H.265 7.3.6.1). @throws BitstreamError */
export function parseSliceStart(nal: Buffer): H265SliceStart {
  const type = ((nal[0] ?? 0xff) >> 1) & 0x3f;
  if (type > LAST_VCL) throw new BitstreamError('not a slice of H.265');
  const reader = new BitReader(unescapeNal(nal.subarray(2, HEAD_BYTES)));
  const isFirst = reader.flag();
  // no_output_of_prior_pics_flag
  if (type >= FIRST_IRAP && type <= LAST_IRAP) reader.skip(1);
  return { isFirst, pps: reader.ueMax(63, 'slice_pic_parameter_set_id') };
}
