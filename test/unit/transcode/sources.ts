import { Counters } from '../../../src/core/counters.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { InputStream } from '../../../src/core/input-stream.ts';
import { rescale, toSeconds, VIDEO_TIMEBASE, type Timebase } from '../../../src/core/timebase.ts';
import type { AudioTrack, MediaTrack, VideoTrack } from '../../../src/core/track.ts';
import { OutputAdapter, type BitstreamFormat, type EncodedPacket } from '../../../src/media-child/bitstream.ts';
import type { EncodedFormat, EncodeSink } from '../../../src/transcode/encode.ts';
import type { AudioEncoding, EncodeJob, ImageEncoding, VideoEncoding } from '../../../src/transcode/encoding.ts';
import { audioTrack, videoTrack } from '../../support/media/packets.ts';
import { recordNut } from './run-command.ts';

/** Samples. */
export const AUDIO_FRAME = 1024;

export interface ClipOptions {
  readonly seconds?: number;
  readonly width?: number;
  readonly height?: number;
  readonly rate?: number;
  /** Frames from key frame to key frame. */
  readonly gop?: number;
  readonly bFrames?: number;
  readonly samplerate?: number;
  /** What is heard, as an expression of ffmpeg's aevalsrc. */
  readonly sound?: string;
  readonly ffmpeg?: string;
}

/** A picture in H.264 and a sound in AAC as a source sends them, in the order of decoding. */
export interface Clip {
  readonly video: VideoTrack;
  readonly audio: AudioTrack;
  readonly packets: readonly Packet[];
  readonly seconds: number;
}

export async function makeClip(options: ClipOptions = {}): Promise<Clip> {
  const {
    seconds = 4,
    width = 320,
    height = 180,
    rate = 25,
    gop = rate,
    bFrames = 0,
    samplerate = 48_000,
    sound = 'sin(2*PI*440*t)/4',
    ffmpeg,
  } = options;
  const {
    streams: [picture, tone],
    frames,
  } = await recordNut(
    [
      '-f',
      'lavfi',
      '-i',
      `testsrc2=size=${width}x${height}:rate=${rate}`,
      '-f',
      'lavfi',
      '-i',
      `aevalsrc='${sound}':s=${samplerate}`,
      '-t',
      String(seconds),
      '-c:v',
      'libx264',
      '-preset',
      'ultrafast',
      '-pix_fmt',
      'yuv420p',
      '-threads',
      '1',
      '-g',
      String(gop),
      '-keyint_min',
      String(gop),
      '-sc_threshold',
      '0',
      '-bf',
      String(bFrames),
      '-c:a',
      'aac',
      '-ac',
      '2',
      '-enc_time_base:v',
      '1:90000',
    ],
    ffmpeg,
  );
  if (picture === undefined || tone === undefined) throw new Error('no clip');
  const video = read('H264', 0, VIDEO_TIMEBASE);
  const audio = read('AAC', 1, { num: 1, den: samplerate });

  function read(codec: 'H264' | 'AAC', stream: 0 | 1, timebase: Timebase) {
    let format: BitstreamFormat | undefined;
    const packets: EncodedPacket[] = [];
    const source = stream === 0 ? picture : tone;
    const adapter = new OutputAdapter(codec, source as NonNullable<typeof source>, {
      format: (told) => (format = told),
      packet: (packet) => void packets.push(packet),
    });
    for (const frame of frames) if (frame.stream === stream) adapter.push(frame);
    adapter.end();
    const from = (source as NonNullable<typeof source>).timebase;
    const scaled = packets.map((packet) => ({
      ...packet,
      dts: rescale(packet.dts, from, timebase),
      pts: rescale(packet.pts, from, timebase),
    }));
    return { config: (format as BitstreamFormat | undefined)?.config, packets: scaled };
  }

  const videoOf = videoTrack({ config: video.config, width, height, framerate: rate });
  const audioOf = audioTrack({ config: audio.config, samplerate, timebase: { num: 1, den: samplerate } });
  const packets = [
    ...video.packets.map((packet): Packet => ({ ...packet, track: videoOf })),
    ...audio.packets.map((packet): Packet => ({ ...packet, track: audioOf })),
  ]
    .filter(({ pts }) => pts >= 0)
    .sort((a, b) => secondsOf(a) - secondsOf(b));
  return { video: videoOf, audio: audioOf, packets, seconds };
}

/** Decode time of a packet. */
export function secondsOf({ dts, track }: Packet): number {
  return toSeconds(dts, (track as MediaTrack).timebase);
}

/** Up to when there are packets of both tracks of a clip. */
export function lastSeconds({ video, audio }: Clip, packets: readonly Packet[]): number {
  const lasts = [video, audio].map((track) => packets.findLast((packet) => packet.track === track));
  return Math.min(...lasts.map((packet) => (packet === undefined ? 0 : secondsOf(packet))));
}

/** A clip played over and over; each time it goes on where it was. */
export function* looped({ audio, packets, seconds }: Clip, rounds: number): Generator<Packet> {
  const frames = audioFrames({ audio, seconds });
  for (let round = 0; round < rounds; round++) {
    for (const packet of packets) {
      const isAudio = packet.track === audio;
      if (isAudio && packet.dts >= frames * AUDIO_FRAME) continue;
      const offset = round * (isAudio ? frames * AUDIO_FRAME : seconds * 90_000);
      yield { ...packet, dts: packet.dts + offset, pts: packet.pts + offset };
    }
  }
}

/** Audio frames that fill one round of a clip. */
export function audioFrames({ audio, seconds }: Pick<Clip, 'audio' | 'seconds'>): number {
  return Math.ceil((seconds * audio.samplerate) / AUDIO_FRAME);
}

export function openInput(clip: Clip): InputStream {
  const input = new InputStream('live', { type: 'Rtmp', kind: 'rtmp' }, new Counters());
  input.setTracks([clip.video, clip.audio]);
  return input;
}

export function videoEncoding(shape: Partial<VideoEncoding> = {}): VideoEncoding {
  return {
    type: 'video',
    codec: 'H264',
    width: 160,
    height: 88,
    bitrate: 150_000,
    framerate: 0,
    expectedFramerate: 25,
    skipFrames: undefined,
    keyFrames: 1,
    keyFrameInterval: 0,
    preset: 'faster',
    profile: undefined,
    bFrames: 0,
    lookahead: -1,
    threads: 1,
    modules: 'x264',
    extraOptions: undefined,
    ...shape,
  };
}

export function audioEncoding(shape: Partial<AudioEncoding> = {}): AudioEncoding {
  return {
    type: 'audio',
    codec: 'AAC',
    bitrate: 64_000,
    samplerate: 48_000,
    channels: 2,
    modules: undefined,
    ...shape,
  };
}

export function imageEncoding(shape: Partial<ImageEncoding> = {}): ImageEncoding {
  return { type: 'image', codec: 'JPEG', width: 160, height: 88, framerate: 1, skipFrames: undefined, ...shape };
}

/** A job with a sink that keeps what it gets. */
export class Taken implements EncodeSink {
  readonly job: EncodeJob;
  readonly formats: EncodedFormat[] = [];
  readonly packets: EncodedPacket[] = [];
  readonly failures: { readonly reason: string; readonly final: boolean }[] = [];

  constructor(from: VideoTrack | AudioTrack, encoding: EncodeJob['encoding']) {
    this.job = { from, encoding };
  }

  get task() {
    return { job: this.job, sink: this };
  }

  /** Seconds up to which it got something. */
  get reached(): number {
    const last = this.packets.at(-1);
    const format = this.formats.at(-1);
    return last === undefined || format === undefined ? -1 : toSeconds(last.pts + last.duration, format.timebase);
  }

  started(format: EncodedFormat): void {
    this.formats.push(format);
  }

  packet(packet: EncodedPacket): void {
    this.packets.push(packet);
  }

  failed(reason: string, final: boolean): void {
    this.failures.push({ reason, final });
  }
}

/** A clip's picture and its sound, each encoded once. */
export function pictureAndSound({ video, audio }: Clip): [video: Taken, aac: Taken] {
  return [new Taken(video, videoEncoding()), new Taken(audio, audioEncoding())];
}
