import { parseAudioSpecificConfig } from '../../../src/codecs/aac.ts';
import { videoState, type VideoState } from '../../../src/containers/elementary/video.ts';
import { audioParts, readAudioPart } from '../../../src/containers/flv/audio.ts';
import { readVideoPart, videoParts } from '../../../src/containers/flv/video.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import { Timeline } from '../../../src/core/timeline.ts';
import type { AudioTrack, Track, VideoCodec, VideoTrack } from '../../../src/core/track.ts';
import { encodeFlv } from './flv-file.ts';

/** Picture and AAC made by an ffmpeg, with the timestamps that RTMP would carry, as the packets of a source. */
export function encode(args: readonly string[], ffmpeg?: string): { tracks: Track[]; packets: Packet[] } {
  const timeline = new Timeline({ timebase: { num: 1, den: 1000 }, bits: 32 }, true);
  const video = timeline.track(VIDEO_TIMEBASE);
  let audio: ReturnType<typeof timeline.track> | undefined;
  let state: VideoState | undefined;
  let videoTrack: VideoTrack | undefined;
  let audioTrack: AudioTrack | undefined;
  const packets: Packet[] = [];
  for (const { type, time, body } of encodeFlv(args, ffmpeg)) {
    if (type === 'video') {
      const [part] = videoParts(body);
      const tag = part && readVideoPart(part);
      if (tag === undefined) continue;
      state ??= videoState(tag.codec);
      if (tag.packet === 'config') state.configure(tag.data);
      const frame = tag.packet === 'frame' ? state.frame(tag.data) : undefined;
      if (frame === undefined || state.format === undefined) continue;
      videoTrack ??= pictureTrack(tag.codec, state.format);
      const dts = video.next(time);
      const pts = dts + tag.compositionTime * 90;
      packets.push({ track: videoTrack, dts, pts, duration: 0, ...frame });
    } else {
      const [part] = audioParts(body);
      const tag = part && readAudioPart(part);
      if (tag?.packet === 'config') {
        audioTrack = aacTrack(tag.data);
        audio = timeline.track(audioTrack.timebase);
      }
      if (tag?.packet !== 'frame' || audioTrack === undefined || audio === undefined) continue;
      const dts = audio.nextFrame(time, 1024);
      packets.push({ track: audioTrack, dts, pts: dts, duration: 1024, key: true, data: tag.data });
    }
  }
  return { tracks: [videoTrack, audioTrack].filter((track) => track !== undefined), packets };
}

function pictureTrack(codec: VideoCodec, format: NonNullable<VideoState['format']>): VideoTrack {
  return {
    id: 0,
    name: 'video',
    type: 'video',
    codec,
    timebase: VIDEO_TIMEBASE,
    bypass: true,
    bitrate: 0,
    keyFrameInterval: 0,
    ...format,
  };
}

function aacTrack(config: Buffer): AudioTrack {
  const { samplerate, channels } = parseAudioSpecificConfig(config);
  return {
    id: 1,
    name: 'audio',
    type: 'audio',
    codec: 'AAC',
    timebase: { num: 1, den: samplerate },
    bypass: true,
    config,
    samplerate,
    channels,
    bitrate: 0,
  };
}
