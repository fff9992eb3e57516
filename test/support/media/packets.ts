import type { Packet } from '../../../src/core/packet.ts';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import { writeCue } from '../../../src/core/subtitle-cue.ts';
import type { AudioTrack, DataTrack, MediaTrack, SubtitleTrack, VideoTrack } from '../../../src/core/track.ts';

/** avcC of 640x360 baseline and of 1280x720 high, as x264 writes them. */
export const AVC_BASELINE = Buffer.from(
  '0142c01effe100196742c01ed900a02ff970110000030001000003003c0f162e4801000568cb83cb20',
  'hex',
);
export const AVC_HIGH = Buffer.from(
  '0164001fffe1001a6764001facd9405005bb0110000003001000000303c0f183196001000668ebe3cb22c0fdf8f800',
  'hex',
);
/** AudioSpecificConfig of AAC LC, 48 kHz, stereo. */
export const AAC_LC = Buffer.from('1190', 'hex');
/** The same of the object type SSR, for which there is no silence. */
export const AAC_SSR = Buffer.from('1990', 'hex');

export function videoTrack(shape: Partial<VideoTrack> = {}): VideoTrack {
  return {
    id: 0,
    name: 'video',
    type: 'video',
    codec: 'H264',
    timebase: VIDEO_TIMEBASE,
    bypass: true,
    config: AVC_BASELINE,
    width: 640,
    height: 360,
    bitrate: 0,
    framerate: 30,
    keyFrameInterval: 0,
    ...shape,
  };
}

export function audioTrack(shape: Partial<AudioTrack> = {}): AudioTrack {
  return {
    id: 1,
    name: 'audio',
    type: 'audio',
    codec: 'AAC',
    timebase: { num: 1, den: 48_000 },
    bypass: true,
    config: AAC_LC,
    samplerate: 48_000,
    channels: 2,
    bitrate: 0,
    ...shape,
  };
}

export function dataTrack(shape: Partial<DataTrack> = {}): DataTrack {
  return { id: 1024, name: 'Data', type: 'data', codec: 'ID3v2', timebase: VIDEO_TIMEBASE, bypass: true, ...shape };
}

export function subtitleTrack(shape: Partial<SubtitleTrack> = {}): SubtitleTrack {
  return {
    ...{ id: 768, name: 'Subtitle', type: 'subtitle', codec: 'WebVTT', timebase: { num: 1, den: 1000 }, bypass: true },
    ...{ publicName: 'English', language: 'en', autoSelect: false, isDefault: false, forced: false },
    ...shape,
  };
}

/** A text that is shown for a second. @param ms media time */
export function cuePacket(track: SubtitleTrack, ms: number, text: string, settings = ''): Packet {
  return { track, dts: ms, pts: ms, duration: 1000, key: true, data: writeCue({ settings, text }) };
}

/** An event that takes effect when it comes. @param ticks of its track */
export function eventPacket(track: DataTrack, ticks: number, data: Buffer | string): Packet {
  return { track, dts: ticks, pts: ticks, duration: 0, key: true, data: Buffer.from(data) };
}

export interface Span {
  /** Seconds. */
  readonly from?: number;
  readonly to: number;
  readonly framerate?: number;
  /** Frames from key frame to key frame. */
  readonly gop?: number;
  readonly bytes?: number;
}

/** Frames of a picture at a constant rate; the key frames are at multiples of the interval since 0. */
export function videoPackets(
  track: VideoTrack,
  { from = 0, to, framerate = 30, gop = 30, bytes = 100 }: Span,
): Packet[] {
  const packets: Packet[] = [];
  for (let frame = Math.round(from * framerate); frame < Math.round(to * framerate); frame++) {
    const dts = Math.round((frame * 90_000) / framerate);
    packets.push({ track, dts, pts: dts, duration: 0, key: frame % gop === 0, data: Buffer.alloc(bytes, frame) });
  }
  return packets;
}

export function audioPackets(track: AudioTrack, { from = 0, to, bytes = 50 }: Span): Packet[] {
  const packets: Packet[] = [];
  const { den } = track.timebase;
  for (let dts = Math.ceil((from * den) / 1024) * 1024; dts < to * den; dts += 1024) {
    packets.push({ track, dts, pts: dts, duration: 0, key: true, data: Buffer.alloc(bytes, dts) });
  }
  return packets;
}

/** In the order in which a source sends them. */
export function interleaved(...lists: readonly Packet[][]): Packet[] {
  const seconds = ({ dts, track }: Packet) => dts / (track as MediaTrack).timebase.den;
  return lists.flat().sort((one, other) => seconds(one) - seconds(other));
}

/** A picture's packet with its bytes as one NAL unit. */
export function withNal(packet: Packet): Packet {
  const data = Buffer.alloc(4 + packet.data.length, 0x41);
  data.writeUInt32BE(packet.data.length);
  return { ...packet, data };
}
