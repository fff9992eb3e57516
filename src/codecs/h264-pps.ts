import { BitReader, BitstreamError } from './bits.ts';
import { unescapeNal } from './nal.ts';

export interface H264Pps {
  readonly id: number;
  /** Id of its SPS. */
  readonly sps: number;
}

const PPS = 8;

/** Reads the ids of a picture parameter set with its NAL header (H.264 7.3.2.2). @throws BitstreamError */
export function parsePps(nal: Buffer): H264Pps {
  if (((nal[0] ?? 0) & 0x1f) !== PPS) throw new BitstreamError('not an H.264 PPS');
  const reader = new BitReader(unescapeNal(nal.subarray(1, 16)));
  const id = reader.ueMax(255, 'pic_parameter_set_id');
  return { id, sps: reader.ueMax(31, 'seq_parameter_set_id') };
}
