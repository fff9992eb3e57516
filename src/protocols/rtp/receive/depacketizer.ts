import type { RtpPacket } from './packet.ts';

/** Receives the frames of one RTP stream. */
export interface FrameSink {
  /**
   * A whole frame, in the form that `videoState` and `audioState` take; of MP2T, transport stream packets.
   * @param timestamp RTP time of its presentation, modulo 2^32
   */
  frame(data: Buffer, timestamp: number): void;
  /** Decoder configuration for the frames to come, where packets bring it: AudioSpecificConfig of LATM. */
  configuration(config: Buffer): void;
  /** One or more frames before the next one are missing: frames that reference them cannot be shown. */
  damaged(reason: string): void;
}

/** Assembles frames from the payloads of one RTP stream, which come in order. */
export interface Depacketizer {
  /** Takes a packet, and owns its bytes from now on: some are changed in place. */
  push(packet: RtpPacket): void;
  /** Packets before the next one were lost. */
  lose(): void;
}
