import { BitWriter } from '../../../src/codecs/bits.ts';

/** Of H.264 SPS: 16 times as many samples across and down. */
export interface SpsOptions {
  readonly id?: number;
  readonly across?: number;
  readonly down?: number;
  readonly profile?: 66 | 77;
}

/** An SPS of frames in pic_order_cnt_type 0, without VUI (H.264 7.3.2.1.1). */
export function h264Sps({ id = 0, across = 20, down = 12, profile = 77 }: SpsOptions = {}): Buffer {
  const bits = new BitWriter().ue(id);
  // log2_max_frame_num, pic_order_cnt_type and its bits, max_num_ref_frames, no gaps
  bits.ue(0).ue(0).ue(4).ue(4).flag(false);
  bits.ue(across - 1).ue(down - 1);
  // frames only, direct_8x8_inference, no cropping, no VUI, and the trailing bit
  bits.flag(true).flag(true).flag(false).flag(false).flag(true);
  return Buffer.concat([Buffer.of(0x67, profile, 0, 30), bits.finish()]);
}

/** @param qp tells one content from another (H.264 7.3.2.2) */
export function h264Pps(id = 0, sps = 0, qp = 0): Buffer {
  const bits = new BitWriter().ue(id).ue(sps).flag(false).flag(false).ue(0).ue(0).ue(0);
  bits.flag(false).write(0, 2).se(qp).se(0).se(0).flag(false).flag(false).flag(false).flag(true);
  return Buffer.concat([Buffer.of(0x68), bits.finish()]);
}

export interface SliceOptions {
  readonly pps?: number;
  readonly idr?: boolean;
  /** frame_num, of 4 bits. */
  readonly frame?: number;
  /** pic_order_cnt_lsb, of 8 bits. */
  readonly order?: number;
  readonly bytes?: number;
}

/** A slice of h264Sps() whose header alone can be read (H.264 7.3.3). */
export function h264Slice({ pps = 0, idr = false, frame = 0, order = 0, bytes = 40 }: SliceOptions = {}): Buffer {
  const bits = new BitWriter()
    .ue(0)
    .ue(idr ? 7 : 5)
    .ue(pps)
    .write(frame, 4);
  if (idr) bits.ue(0);
  bits.write(order, 8);
  return Buffer.concat([Buffer.of(idr ? 0x65 : 0x41), bits.flag(true).finish(), Buffer.alloc(bytes, 0xab)]);
}

/** A byte stream with start codes of 4 bytes. */
export function annexB(nals: readonly Buffer[]): Buffer {
  return Buffer.concat(nals.flatMap((nal) => [Buffer.of(0, 0, 0, 1), nal]));
}
