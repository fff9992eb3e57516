import type { Packet } from '../../core/packet.ts';
import type { Codec } from '../../core/track.ts';
import {
  AacPacketizer,
  Ac3Packetizer,
  Eac3Packetizer,
  MpegAudioPacketizer,
  OpusPacketizer,
  TelephonyPacketizer,
} from './audio.ts';
import { Av1Packetizer } from './av1.ts';
import { H264Packetizer } from './h264.ts';
import { H265Packetizer } from './h265.ts';
import type { PayloadSink } from './sender.ts';
import { Vp8Packetizer } from './vp8.ts';
import { Vp9Packetizer } from './vp9.ts';

/** Cuts frames of one track into RTP payloads. */
export interface Packetizer {
  /** @throws BitstreamError, RangeError on a frame that cannot be sent; packets of it may have left already */
  packetize(packet: Packet, sink: PayloadSink): void;
}

const PACKETIZERS: Partial<Record<Codec, new () => Packetizer>> = {
  H264: H264Packetizer,
  H265: H265Packetizer,
  VP8: Vp8Packetizer,
  VP9: Vp9Packetizer,
  AV1: Av1Packetizer,
  OPUS: OpusPacketizer,
  AAC: AacPacketizer,
  MP3: MpegAudioPacketizer,
  MP2: MpegAudioPacketizer,
  AC3: Ac3Packetizer,
  EAC3: Eac3Packetizer,
  PCMA: TelephonyPacketizer,
  PCMU: TelephonyPacketizer,
  G722: TelephonyPacketizer,
};

/** @throws RangeError for a codec without payload format here */
export function createPacketizer(codec: Codec): Packetizer {
  const Format = PACKETIZERS[codec];
  if (Format === undefined) throw new RangeError(`${codec} has no RTP payload format`);
  return new Format();
}
