import { BitReader, BitstreamError } from './bits.ts';
import { unescapeNal } from './nal.ts';

export interface H265Pps {
  readonly id: number;
  /** Id of its SPS. */
  readonly sps: number;
}

const PPS = 34;

/** Reads the ids of a picture parameter set with its NAL header (H.265 7.3.2.3.1). @throws BitstreamError */
export function parsePps(nal: Buffer): H265Pps {
  if (nal.length < 3 || (((nal[0] as number) >> 1) & 0x3f) !== PPS) throw new BitstreamError('not an H.265 PPS');
  const reader = new BitReader(unescapeNal(nal.subarray(2, 16)));
  return { id: reader.ueMax(63, 'pps_pic_parameter_set_id'), sps: reader.ueMax(15, 'pps_seq_parameter_set_id') };
}
