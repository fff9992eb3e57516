import type { NutFrame } from '../../../src/containers/nut/reader.ts';
import type { AudioTrack, VideoTrack } from '../../../src/core/track.ts';
import type { AudioEncoding, EncodeJob, ImageEncoding, VideoEncoding } from '../../../src/transcode/encoding.ts';
import { AUDIO, VIDEO } from '../../unit/core/support.ts';
import { recordNut, type Recording } from '../../unit/transcode/run-command.ts';

export const PICTURE: VideoTrack = { ...VIDEO, width: 160, height: 90, framerate: 30 };
export const SOUND: AudioTrack = AUDIO;

const SMALL: VideoEncoding = {
  type: 'video',
  codec: 'H264',
  width: 160,
  height: 92,
  bitrate: 100_000,
  framerate: 0,
  skipFrames: undefined,
  expectedFramerate: 30,
  keyFrames: 1,
  keyFrameInterval: 0,
  preset: undefined,
  profile: undefined,
  bFrames: 0,
  lookahead: -1,
  threads: -1,
  modules: 'x264',
  extraOptions: undefined,
};

/** A small video of a track; its expected frame rate follows the configured one. */
export function videoJob(encoding: Partial<VideoEncoding> = {}, from: VideoTrack = PICTURE): EncodeJob {
  const expectedFramerate = encoding.framerate || from.framerate || 30;
  return { from, encoding: { ...SMALL, expectedFramerate, ...encoding } };
}

export function audioJob(encoding: Partial<AudioEncoding> = {}, from: AudioTrack = SOUND): EncodeJob {
  const plain: AudioEncoding = {
    type: 'audio',
    codec: 'AAC',
    bitrate: 64_000,
    samplerate: 48_000,
    channels: 2,
    modules: undefined,
  };
  return { from, encoding: { ...plain, ...encoding } };
}

export function imageJob(codec: ImageEncoding['codec'], encoding: Partial<ImageEncoding> = {}): EncodeJob {
  const plain: ImageEncoding = { type: 'image', codec, width: 160, height: 92, framerate: 1, skipFrames: undefined };
  return { from: PICTURE, encoding: { ...plain, ...encoding } };
}

interface Source {
  readonly seconds?: number;
  readonly rate?: number;
  /** Options of the video encoder. */
  readonly codec?: readonly string[];
  /** A source of ffmpeg's in place of the test pattern. */
  readonly pattern?: string;
}

const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0'];

/** Picture and sound, stamped as RTMP does: in whole milliseconds. */
export async function recordSource({ seconds = 4, rate = 30, codec = X264, pattern }: Source = {}): Promise<Recording> {
  const picture = pattern ?? `testsrc2=size=160x90:rate=${rate},noise=alls=4:allf=t`;
  const { streams, frames } = await recordNut([
    '-f',
    'lavfi',
    '-t',
    String(seconds),
    '-i',
    picture,
    '-f',
    'lavfi',
    '-t',
    String(seconds),
    '-i',
    'sine=frequency=440:sample_rate=48000,aformat=channel_layouts=stereo',
    '-fps_mode',
    'passthrough',
    '-enc_time_base:v',
    '1:90000',
    ...codec,
    '-g',
    String(rate),
    '-pix_fmt',
    'yuv420p',
    '-c:a',
    'aac',
    '-b:a',
    '64k',
  ]);
  // an encoder begins before the first sample, a source does not
  const priming = Math.min(...frames.filter(({ stream }) => stream === 1).map(({ pts }) => pts), 0);
  const first = Math.min(...frames.filter(({ stream }) => stream === 0).map(({ pts }) => pts));
  return {
    streams,
    frames: frames.map((frame) => ({
      ...frame,
      pts: frame.stream === 1 ? frame.pts - priming : Math.round((frame.pts - first) / 90) * 90,
    })),
  };
}

/** Only one stream of a recording, as its only one. */
export function onlyStream({ streams, frames }: Recording, wanted: number): Recording {
  const own = frames.filter(({ stream }) => stream === wanted).map((frame) => ({ ...frame, stream: 0 }));
  return { streams: streams.slice(wanted, wanted + 1), frames: own };
}

/** A recording whose frames of one stream are others. */
export function changed(
  recording: Recording,
  stream: number,
  change: (frame: NutFrame, index: number) => NutFrame[],
): Recording {
  let index = 0;
  const frames = recording.frames.flatMap((frame) => (frame.stream === stream ? change(frame, index++) : [frame]));
  return { ...recording, frames };
}

/** Seconds of the frames of a stream, in the order of output. */
export function timesOf({ streams, frames }: Recording, stream = 0): number[] {
  const { num, den } = streams[stream]?.timebase ?? { num: 1, den: 1 };
  return frames
    .filter((frame) => frame.stream === stream)
    .map(({ pts }) => (pts * num) / den)
    .sort((a, b) => a - b);
}

/** Rounded to a tenth of a millisecond, to be compared. */
export function rounded(times: readonly number[]): number[] {
  return times.map((time) => Math.round(time * 10_000) / 10_000);
}
