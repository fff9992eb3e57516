import { buildAvcConfig } from '../../../src/codecs/h264-config.ts';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as hevc from '../../../src/codecs/h265.ts';
import { buildHevcConfig } from '../../../src/codecs/h265-config.ts';
import { canonicalize, isKeyNal, isParameterSet, nalType, NAL } from '../../../src/codecs/h264.ts';
import { joinNals, splitAnnexB } from '../../../src/codecs/nal.ts';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import type { AudioTrack, VideoTrack } from '../../../src/core/track.ts';
import { VPX_REALTIME } from '../media/ffmpeg.ts';

const run = promisify(execFile);

export interface Frame {
  readonly data: Buffer;
  readonly key: boolean;
  /** In the track's timebase. */
  readonly duration: number;
  /** Presentation time behind decoding time. */
  readonly delay: number;
}

export interface Media<T> {
  readonly track: T;
  readonly frames: readonly Frame[];
}

export interface H264Options {
  /** What ffmpeg makes it of; `width` and `height` are those of it then. */
  readonly source?: string;
  readonly width?: number;
  readonly height?: number;
  readonly fps?: number;
  /** Frames from key frame to key frame. */
  readonly gop?: number;
  readonly seconds?: number;
  readonly kbit?: number;
  /** Pictures between two others that are shown before the second, and sent behind it. */
  readonly bframes?: number;
  readonly id?: number;
  readonly name?: string;
}

async function ffmpeg(args: readonly string[]): Promise<Buffer> {
  const { stdout } = await run('ffmpeg', ['-nostdin', '-v', 'error', ...args], {
    encoding: 'buffer',
    maxBuffer: 256 * 1024 * 1024,
  });
  return stdout;
}

/** A moving test picture, in the canonical form. */
export async function h264(options: H264Options = {}): Promise<Media<VideoTrack>> {
  const {
    width = 320,
    height = 180,
    fps = 30,
    gop = 15,
    seconds = 2,
    kbit = 400,
    bframes = 0,
    id = 0,
    name = 'video',
  } = options;
  const { source = `testsrc2=size=${width}x${height}:rate=${fps}` } = options;
  const stream = await ffmpeg([
    '-f',
    'lavfi',
    '-i',
    source,
    '-t',
    `${seconds}`,
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    ...(bframes > 0 ? ['-profile:v', 'main'] : ['-tune', 'zerolatency', '-profile:v', 'baseline']),
    '-pix_fmt',
    'yuv420p',
    '-b:v',
    `${kbit}k`,
    '-maxrate',
    `${kbit}k`,
    '-bufsize',
    `${kbit}k`,
    '-g',
    `${gop}`,
    '-keyint_min',
    `${gop}`,
    '-x264-params',
    `aud=1:sliced-threads=0:scenecut=0:bframes=${bframes}:b-adapt=0:b-pyramid=none`,
    '-f',
    'h264',
    'pipe:1',
  ]);
  const nals = splitAnnexB(stream);
  const sets = nals.filter(isParameterSet);
  const config = buildAvcConfig({
    sps: sets.filter((nal) => nalType(nal) === NAL.sps).slice(0, 1),
    pps: sets.filter((nal) => nalType(nal) === NAL.pps).slice(0, 1),
  });
  const units: Buffer[][] = [];
  for (const nal of nals) {
    if (nalType(nal) === NAL.delimiter) units.push([]);
    else units.at(-1)?.push(nal);
  }
  const frames = units.map((unit, index) => ({
    data: canonicalize(joinNals(unit), 4).data,
    key: unit.some(isKeyNal),
    duration: 90_000 / fps,
    delay: (delayOf(index % gop, gop, bframes) * 90_000) / fps,
  }));
  return {
    track: {
      id,
      name,
      type: 'video',
      codec: 'H264',
      timebase: VIDEO_TIMEBASE,
      bypass: true,
      config,
      width,
      height,
      bitrate: kbit * 1000,
      framerate: fps,
      keyFrameInterval: 0,
    },
    frames,
  };
}

/** A moving test picture in H.265, of slices that take one packet or several; every 15th frame is a key frame. */
export async function h265({ seconds = 2, kbit = 900 } = {}): Promise<Media<VideoTrack>> {
  const [width, height, fps, gop] = [320, 180, 30, 15];
  const picture = `testsrc2=size=${width}x${height}:rate=${fps},noise=alls=6:allf=t,format=yuv420p`;
  const settings =
    `keyint=${gop}:min-keyint=${gop}:scenecut=0:open-gop=0:bframes=0:repeat-headers=1:aud=1:` +
    'slices=2:log-level=none';
  const input = ['-f', 'lavfi', '-i', picture, '-t', `${seconds}`];
  const encoder = ['-c:v', 'libx265', '-preset', 'ultrafast', '-b:v', `${kbit}k`, '-x265-params', settings];
  const stream = await ffmpeg([...input, ...encoder, '-f', 'hevc', 'pipe:1']);
  const nals = splitAnnexB(stream);
  const set = (type: number) => nals.filter((nal) => hevc.nalType(nal) === type).slice(0, 1);
  const config = buildHevcConfig({ vps: set(hevc.NAL.vps), sps: set(hevc.NAL.sps), pps: set(hevc.NAL.pps) });
  const units: Buffer[][] = [];
  for (const nal of nals) {
    if (hevc.nalType(nal) === hevc.NAL.delimiter) units.push([]);
    else units.at(-1)?.push(nal);
  }
  const frames = units.map((unit) => ({
    data: hevc.canonicalize(joinNals(unit), 4).data,
    key: unit.some(hevc.isKeyNal),
    duration: 90_000 / fps,
    delay: 0,
  }));
  const form = { id: 0, name: 'video', type: 'video', codec: 'H265', timebase: VIDEO_TIMEBASE, bypass: true } as const;
  const size = { width, height, bitrate: kbit * 1000, framerate: fps, keyFrameInterval: 0 };
  return { track: { ...form, ...size, config }, frames };
}

/** By how many pictures one is shown behind its decoding, by its place in its group, whose last one is none between others. */
function delayOf(place: number, gop: number, bframes: number): number {
  if (bframes === 0 || place === 0) return bframes === 0 ? 0 : 1;
  const inRun = (place - 1) % (bframes + 1);
  const run = Math.min(bframes, gop - 1 - (place - inRun));
  return inRun === 0 ? 1 + run : 0;
}

/** A tone in packets of 20 ms. */
export async function opus(
  seconds = 2,
  id = 1,
  name = 'audio',
  frequency = 440,
  source = `sine=frequency=${frequency}:sample_rate=48000`,
): Promise<Media<AudioTrack>> {
  const ogg = await ffmpeg([
    '-f',
    'lavfi',
    '-i',
    source,
    '-t',
    `${seconds}`,
    '-ac',
    '2',
    '-c:a',
    'libopus',
    '-b:a',
    '64k',
    '-f',
    'ogg',
    'pipe:1',
  ]);
  const [, , ...packets] = oggPackets(ogg);
  return {
    track: {
      id,
      name,
      type: 'audio',
      codec: 'OPUS',
      timebase: { num: 1, den: 48_000 },
      bypass: true,
      samplerate: 48_000,
      channels: 2,
      bitrate: 64_000,
    },
    frames: packets.map((data) => ({ data, key: true, duration: 960, delay: 0 })),
  };
}

const TELEPHONY = { PCMU: ['pcm_mulaw', 'mulaw'], PCMA: ['pcm_alaw', 'alaw'], G722: ['g722', 'g722'] } as const;

/** A tone in G.711 or G.722, in packets of 20 ms: 160 bytes each in all of them. */
export async function telephony(codec: keyof typeof TELEPHONY): Promise<Media<AudioTrack>> {
  const samplerate = codec === 'G722' ? 16_000 : 8000;
  const [encoder, format] = TELEPHONY[codec];
  const tone = ['-f', 'lavfi', '-i', `sine=frequency=440:sample_rate=${samplerate}`, '-t', '2', '-af', 'volume=12dB'];
  const bytes = await ffmpeg([...tone, '-c:a', encoder, '-f', format, 'pipe:1']);
  const timebase = { num: 1, den: samplerate };
  const frames = Array.from({ length: Math.floor(bytes.length / 160) }, (_, i) => {
    return { data: bytes.subarray(i * 160, (i + 1) * 160), key: true, duration: samplerate / 50, delay: 0 };
  });
  const form = { id: 1, name: 'audio', type: 'audio', bypass: true, channels: 1, bitrate: 64_000 } as const;
  return { track: { ...form, codec, samplerate, timebase }, frames };
}

const IVF = {
  VP8: ['libvpx', ...VPX_REALTIME],
  VP9: ['libvpx-vp9', ...VPX_REALTIME, '-lag-in-frames', '0'],
  AV1: ['libsvtav1', '-preset', '12', '-svtav1-params', 'pred-struct=1'],
} as const;

/** A moving test picture in another codec; every 30th frame is a key frame. */
export async function ivf(
  codec: keyof typeof IVF,
  options: Omit<H264Options, 'gop' | 'kbit'> = {},
): Promise<Media<VideoTrack>> {
  const { seconds = 2, id = 0, name = 'video', width = 320, height = 180, fps = 30 } = options;
  const { source = `testsrc2=size=${width}x${height}:rate=${fps}` } = options;
  const stream = await ffmpeg([
    '-f',
    'lavfi',
    '-i',
    source,
    '-t',
    `${seconds}`,
    '-pix_fmt',
    'yuv420p',
    '-c:v',
    ...IVF[codec],
    '-b:v',
    '300k',
    '-g',
    '30',
    '-f',
    'ivf',
    'pipe:1',
  ]);
  const frames: Frame[] = [];
  for (let at = 32; at < stream.length;) {
    const size = stream.readUInt32LE(at);
    const data = stream.subarray(at + 12, at + 12 + size);
    frames.push({ data, key: frames.length % 30 === 0, duration: 90_000 / fps, delay: 0 });
    at += 12 + size;
  }
  return {
    track: {
      id,
      name,
      type: 'video',
      codec,
      timebase: VIDEO_TIMEBASE,
      bypass: true,
      width,
      height,
      bitrate: 300_000,
      framerate: fps,
      keyFrameInterval: 0,
    },
    frames,
  };
}

/** The packets of an Ogg file with one logical stream (RFC 3533 section 6). */
function oggPackets(ogg: Buffer): Buffer[] {
  const packets: Buffer[] = [];
  let parts: Buffer[] = [];
  for (let at = 0; at < ogg.length;) {
    const count = ogg.readUInt8(at + 26);
    const table = ogg.subarray(at + 27, at + 27 + count);
    at += 27 + count;
    for (const size of table) {
      parts.push(ogg.subarray(at, at + size));
      at += size;
      if (size === 255) continue;
      packets.push(Buffer.concat(parts));
      parts = [];
    }
  }
  return packets;
}
