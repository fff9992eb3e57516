import { execFileSync } from 'node:child_process';
import { joinNals, splitAnnexB } from '../../../src/codecs/nal.ts';
import { audioState } from '../../../src/containers/elementary/audio.ts';
import { videoState } from '../../../src/containers/elementary/video.ts';
import type { NutStream } from '../../../src/containers/nut/format.ts';
import { NutReader, type NutFrame } from '../../../src/containers/nut/reader.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { rescale, VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import type { AudioCodec, MediaTrack, VideoCodec } from '../../../src/core/track.ts';
import { audioTrack, interleaved, videoTrack } from './packets.ts';

const PICTURE = {
  H264: ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2'],
  H265: ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=error'],
} as const;
const SOUND = {
  AAC: ['-c:a', 'aac'],
  OPUS: ['-c:a', 'libopus'],
  MP3: ['-c:a', 'libmp3lame'],
  MP2: ['-c:a', 'mp2'],
  AC3: ['-c:a', 'ac3'],
  EAC3: ['-c:a', 'eac3'],
  FLAC: ['-c:a', 'flac'],
} as const;

export interface Coded {
  readonly video?: {
    readonly codec: keyof typeof PICTURE;
    readonly size?: string;
    readonly rate?: number;
    readonly gop?: number;
  };
  readonly audio?: keyof typeof SOUND;
  readonly seconds: number;
}

/** What an encoder makes of a test pattern and a tone, in canonical form and in order of decode times. */
export function codedPackets({ video, audio, seconds }: Coded): Packet[] {
  const args: string[] = ['-hide_banner', '-loglevel', 'error'];
  if (video !== undefined)
    args.push('-f', 'lavfi', '-i', `testsrc2=size=${video.size ?? '160x90'}:rate=${video.rate ?? 25}`);
  if (audio !== undefined)
    args.push('-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000,aformat=channel_layouts=stereo');
  if (video !== undefined) args.push(...PICTURE[video.codec], '-pix_fmt', 'yuv420p', '-g', String(video.gop ?? 25));
  if (audio !== undefined) args.push(...SOUND[audio]);
  const nut = execFileSync('ffmpeg', [...args, '-t', String(seconds), '-f', 'nut', 'pipe:1'], { maxBuffer: 1 << 28 });
  return nutPackets(nut, { video: video?.codec, audio });
}

/** What a NUT file has, in canonical form and in order of decode times. */
export function nutPackets(
  nut: Buffer,
  codecs: { readonly video?: VideoCodec | undefined; readonly audio?: AudioCodec | undefined },
): Packet[] {
  let streams: readonly NutStream[] = [];
  const frames: NutFrame[] = [];
  new NutReader({ streams: (told) => (streams = told), frame: (frame) => frames.push(frame) }).push(nut);
  return interleaved(
    ...streams.map((stream, index) => {
      const own = frames.filter((frame) => frame.stream === index);
      return stream.kind === 'video'
        ? pictures(stream, own, codecs.video as VideoCodec, index)
        : sounds(stream, own, codecs.audio as AudioCodec, index);
    }),
  );
}

const IVF = {
  VP8: ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8'],
  VP9: ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8'],
  AV1: ['-c:v', 'libaom-av1', '-cpu-used', '8', '-usage', 'realtime'],
} as const;

/** The same of a video codec without start codes, by way of IVF; the track's id is 0. */
export function ivfPackets(
  codec: keyof typeof IVF,
  { seconds, gop = 25 }: { seconds: number; gop?: number },
): Packet[] {
  const ivf = execFileSync(
    'ffmpeg',
    [
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      'testsrc2=size=160x90:rate=25',
      ...IVF[codec],
      '-b:v',
      '200k',
      '-g',
      String(gop),
    ].concat(['-pix_fmt', 'yuv420p', '-t', String(seconds), '-f', 'ivf', 'pipe:1']),
    { maxBuffer: 1 << 26 },
  );
  return packetsOfIvf(ivf, codec);
}

/** What an IVF file of 25 frames per second has; the track's id is 0. */
export function packetsOfIvf(ivf: Buffer, codec: keyof typeof IVF): Packet[] {
  const state = videoState(codec);
  const units = [];
  for (let at = 32; at < ivf.length;) {
    const size = ivf.readUInt32LE(at);
    const unit = state.frame(ivf.subarray(at + 12, at + 12 + size));
    if (unit !== undefined) units.push({ ...unit, pts: Number(ivf.readBigUInt64LE(at + 4)) * 3600 });
    at += 12 + size;
  }
  const { config, width, height } = state.format as NonNullable<typeof state.format>;
  const track = videoTrack({ id: 0, codec, config, width, height, framerate: 25 });
  return units.map(({ key, data, pts }) => ({ track, dts: pts, pts, duration: 3600, key, data }));
}

/** The tracks of packets, in order of their ids. */
export function tracksOf(packets: readonly Packet[]): MediaTrack[] {
  return [...new Set(packets.map(({ track }) => track as MediaTrack))].sort((one, other) => one.id - other.id);
}

function pictures(stream: NutStream, frames: readonly NutFrame[], codec: VideoCodec, id: number): Packet[] {
  const state = videoState(codec);
  state.frame(joinNals(splitAnnexB(stream.extradata)));
  const shown = frames.map(({ pts }) => rescale(pts, stream.timebase, VIDEO_TIMEBASE));
  const times = [...shown].sort((one, other) => one - other);
  const step = (times[1] as number) - (times[0] as number);
  const delay = Math.max(...shown.map((pts, index) => (times[index] as number) - pts));
  const units = frames.map(({ data }) => state.frame(joinNals(splitAnnexB(data))));
  const { config, width, height } = state.format as NonNullable<typeof state.format>;
  const track = videoTrack({ id, codec, config, width, height, framerate: 90_000 / step });
  return units.flatMap((unit, index) =>
    unit === undefined
      ? []
      : [
          {
            track,
            ...unit,
            duration: 0,
            dts: (times[index] as number) - delay,
            pts: shown[index] as number,
          },
        ],
  );
}

function sounds(stream: NutStream, frames: readonly NutFrame[], codec: AudioCodec, id: number): Packet[] {
  const state = audioState(codec);
  if (stream.extradata.length > 0) state.configure(stream.extradata);
  const durations = frames.map(({ data }) => state.samples(data));
  const { samplerate, channels, config } = state.format as NonNullable<typeof state.format>;
  const track = audioTrack({ id, codec, samplerate, channels, config, timebase: { num: 1, den: samplerate } });
  return frames.map(({ pts, data }, index) => {
    const time = rescale(pts, stream.timebase, track.timebase);
    return { track, dts: time, pts: time, duration: durations[index] as number, key: true, data };
  });
}
