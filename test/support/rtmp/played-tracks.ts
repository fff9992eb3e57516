import type { Packet } from '../../../src/core/packet.ts';
import type { AudioTrack, MediaTrack, VideoTrack } from '../../../src/core/track.ts';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';

const FRAME_TICKS = VIDEO_TIMEBASE.den / 25;

/** A video track with a configuration of one byte. */
export function videoTrack(more: Partial<VideoTrack> = {}): VideoTrack {
  return {
    id: 0,
    name: 'video',
    type: 'video',
    codec: 'H264',
    config: Buffer.of(1),
    timebase: VIDEO_TIMEBASE,
    bypass: true,
    width: 64,
    height: 36,
    bitrate: 0,
    framerate: 25,
    keyFrameInterval: 0,
    ...more,
  };
}

/** An audio track with a configuration. */
export function audioTrack(more: Partial<AudioTrack> = {}): AudioTrack {
  return {
    id: 1,
    name: 'audio',
    type: 'audio',
    codec: 'AAC',
    config: Buffer.of(0x11, 0x90),
    timebase: { num: 1, den: 1000 },
    bypass: true,
    samplerate: 48_000,
    channels: 2,
    bitrate: 0,
    ...more,
  };
}

/** One packet at the time of a video frame, counted from 0; 25 a second. @param bytes its length */
export function packetAt(track: MediaTrack, frame: number, key: Packet['key'] = true, bytes = 8): Packet {
  const time = track.type === 'video' ? frame * FRAME_TICKS : frame * 40;
  return { track, dts: time, pts: time, duration: 0, key, data: Buffer.alloc(bytes, frame & 0xff) };
}
