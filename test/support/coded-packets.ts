import { execFileSync } from 'node:child_process';
import { joinNals, splitAnnexB } from '../../src/codecs/nal.ts';
import { audioState } from '../../src/containers/elementary/audio.ts';
import { videoState } from '../../src/containers/elementary/video.ts';
import type { NutStream } from '../../src/containers/nut/format.ts';
import { NutReader, type NutFrame } from '../../src/containers/nut/reader.ts';
import type { Packet } from '../../src/core/packet.ts';
import { rescale, VIDEO_TIMEBASE } from '../../src/core/timebase.ts';
import type { AudioCodec, MediaTrack, VideoCodec } from '../../src/core/track.ts';
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
  let streams: readonly NutStream[] = [];
  const frames: NutFrame[] = [];
  new NutReader({ streams: (told) => (streams = told), frame: (frame) => frames.push(frame) }).push(nut);
  return interleaved(
    ...streams.map((stream, index) => {
      const own = frames.filter((frame) => frame.stream === index);
      return stream.kind === 'video'
        ? pictures(stream, own, video?.codec as VideoCodec, index)
        : sounds(stream, own, audio as AudioCodec, index);
    }),
  );
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
