import type { Track } from './track.ts';

/**
 * One access unit, audio frame or event, in the canonical form of its codec:
 * - H264, H265: 4-byte length-prefixed NAL units without parameter sets, but for those that the track's configuration
 *   lacks (VideoTrack.inBandSets), which come first
 * - AV1: one temporal unit of OBUs with size fields, without temporal delimiters
 * - VP8, VP9: one frame
 * - AAC: one raw frame without ADTS; Opus: one packet (RFC 6716)
 *
 * Times are integers in the track's timebase. `data` is never written to.
 */
export interface Packet {
  readonly track: Track;
  readonly dts: number;
  readonly pts: number;
  /** 0 when the source does not say. */
  readonly duration: number;
  /**
   * Decoding can start here; true on every audio and data packet. `open`: it is no IDR frame, so frames that follow
   * and are shown before it may refer to frames before it, and some decoders do not start here.
   */
  readonly key: boolean | 'open';
  readonly data: Buffer;
}
