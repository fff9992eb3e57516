import type { Packet } from '../../../../../src/core/packet.ts';
import { VIDEO_TIMEBASE } from '../../../../../src/core/timebase.ts';
import type { VideoTrack } from '../../../../../src/core/track.ts';
import { createPacketizer } from '../../../../../src/protocols/rtp/packetizer.ts';
import { createDepacketizer } from '../../../../../src/protocols/rtp/receive/create.ts';
import type { Depacketizer } from '../../../../../src/protocols/rtp/receive/depacketizer.ts';
import type { RtpFormat } from '../../../../../src/protocols/rtp/receive/format.ts';
import { parseRtp, type RtpPacket } from '../../../../../src/protocols/rtp/receive/packet.ts';
import { RtpSender } from '../../../../../src/protocols/rtp/sender.ts';

export interface Taken {
  readonly depacketizer: Depacketizer;
  /** Frames with their RTP times, and reasons of damage. */
  readonly out: (readonly [frame: Buffer, timestamp: number] | string)[];
  readonly frames: () => Buffer[];
}

/** A depacketizer, and what comes out of it. */
export function take(encoding: string, parameters: RtpFormat['parameters'] = {}, clockRate = 90_000): Taken {
  const out: Taken['out'] = [];
  const depacketizer = createDepacketizer(
    { encoding, clockRate, parameters },
    {
      frame: (data, timestamp) => out.push([data, timestamp]),
      damaged: (reason) => out.push(reason),
      configuration: (config) => out.push(`config ${config.toString('hex')}`),
    },
  );
  return { depacketizer, out, frames: () => out.flatMap((one) => (typeof one === 'string' ? [] : [one[0]])) };
}

/** A packet of one payload, in hexadecimal. */
export function packet(hex: string, { timestamp = 0, marker = false } = {}): RtpPacket {
  return {
    payloadType: 96,
    marker,
    sequence: 0,
    timestamp,
    ssrc: 1,
    payload: Buffer.from(hex.replaceAll(' ', ''), 'hex'),
  };
}

export function videoOf(codec: VideoTrack['codec'], config?: Buffer): VideoTrack {
  return {
    id: 0,
    name: 'video',
    type: 'video',
    codec,
    timebase: VIDEO_TIMEBASE,
    bypass: true,
    width: 640,
    height: 360,
    bitrate: 0,
    framerate: 0,
    keyFrameInterval: 0,
    ...(config && { config }),
  };
}

/** Frames as this server's own packetizer sends them, 3000 ticks apart. */
export function sent(frames: readonly Pick<Packet, 'track' | 'data' | 'key'>[]): RtpPacket[] {
  const packets: RtpPacket[] = [];
  const sender = new RtpSender({
    payloadType: 96,
    ssrc: 1,
    sequence: 65_530,
    output: (bytes) => packets.push(parseRtp(Buffer.from(bytes))),
  });
  const [first] = frames;
  if (first === undefined) return [];
  const packetizer = createPacketizer(first.track.codec);
  for (const frame of frames) {
    packetizer.packetize({ ...frame, dts: 0, pts: 0, duration: 0 }, sender);
    sender.timestamp = (sender.timestamp + 3000) >>> 0;
  }
  return packets;
}
