import { VirtualHost } from '../../../src/config/elements/vhost.ts';
import type { VirtualHostConfig } from '../../../src/config/model.ts';
import { readConfig } from '../../../src/config/read.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { Consumer } from '../../../src/core/reader.ts';
import type { Source } from '../../../src/core/source.ts';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import type { AudioTrack, VideoTrack } from '../../../src/core/track.ts';

/** A virtual host's configuration from the management API's form, through the configuration's own checks. */
export function vhostConfig(json: object): VirtualHostConfig {
  const reading = readConfig(VirtualHost, json);
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems));
  return reading.config as VirtualHostConfig;
}

export const VIDEO: VideoTrack = {
  id: 0,
  type: 'video',
  codec: 'H264',
  name: 'Video',
  timebase: VIDEO_TIMEBASE,
  bypass: false,
  width: 1280,
  height: 720,
  bitrate: 0,
  framerate: 0,
  keyFrameInterval: 0,
};

export const AUDIO: AudioTrack = {
  id: 1,
  type: 'audio',
  codec: 'AAC',
  name: 'Audio',
  timebase: { num: 1, den: 48_000 },
  bypass: false,
  samplerate: 48_000,
  channels: 2,
  bitrate: 0,
};

export const RTMP: Source = { type: 'Rtmp', kind: 'rtmp' };
export const SRT: Source = { type: 'SRT', kind: 'srt' };

/** @param seconds dts, and pts unless told */
export function video(seconds: number, key: boolean, bytes = 100, track = VIDEO, ptsSeconds = seconds): Packet {
  const ticks = (time: number) => Math.round(time * track.timebase.den);
  return { track, dts: ticks(seconds), pts: ticks(ptsSeconds), duration: 0, key, data: Buffer.alloc(bytes) };
}

export function audio(seconds: number, bytes = 10): Packet {
  const dts = Math.round(seconds * AUDIO.timebase.den);
  return { track: AUDIO, dts, pts: dts, duration: 1024, key: true, data: Buffer.alloc(bytes) };
}

/** A consumer that keeps what it got; full from the packet after which `open` is false. */
export class Sink implements Consumer {
  open = true;
  readonly packets: Packet[] = [];
  readonly reasons: string[] = [];

  packet(packet: Packet): boolean {
    this.packets.push(packet);
    return this.open;
  }

  close(reason: string): void {
    this.reasons.push(reason);
  }
}
