import type { RtpPacket } from './packet.ts';

/** Hears of the frames of one RTP stream. */
export interface FrameSink {
  /**
   * A whole frame, in the form that `videoState` and `audioState` take; of MP2T, transport stream packets.
   * @param timestamp RTP time of its presentation, modulo 2^32
   */
  frame(data: Buffer, timestamp: number): void;
  /** What decoders need for the frames to come, where packets bring it: AudioSpecificConfig of LATM. */
  configuration(config: Buffer): void;
  /** One or more frames in front of the next one are missing: pictures that lean on them cannot be shown. */
  damaged(reason: string): void;
}

/** Puts frames together from the payloads of one RTP stream, which come in order. */
export interface Depacketizer {
  /** Takes a packet, whose bytes are its own from now on: some are changed in place. */
  push(packet: RtpPacket): void;
  /** Packets in front of the next one did not come. */
  lose(): void;
}
