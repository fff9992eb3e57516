import { buildHevcConfig } from '../../../src/codecs/h265-config.ts';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as av1 from '../../../src/codecs/av1.ts';
import * as hevc from '../../../src/codecs/h265.ts';
import { joinNals, splitAnnexB } from '../../../src/codecs/nal.ts';
import { buildOpusConfig } from '../../../src/codecs/opus.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { AudioTrack, ImageTrack, Track, VideoTrack } from '../../../src/core/track.ts';
import { ivf, opus, type Media } from '../webrtc/webrtc-media.ts';

const execFileAsync = promisify(execFile);

/** As a source sends it, from time 0 on. */
export function packetsOf<T extends Track>({ track, frames }: Media<T>, start = 0): Packet[] {
  let dts = start;
  return frames.map(({ data, key, duration, delay }) => {
    const packet = { track, dts, pts: dts + delay, duration: 0, key, data };
    dts += duration;
    return packet;
  });
}

/** A moving test picture of a second. */
export async function h265(id = 0): Promise<Media<VideoTrack>> {
  const { stdout } = await execFileAsync(
    'ffmpeg',
    [
      '-nostdin',
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      'testsrc2=size=320x180:rate=30',
      '-t',
      '1',
      '-pix_fmt',
      'yuv420p',
      '-c:v',
      'libx265',
      '-preset',
      'ultrafast',
      '-x265-params',
      'aud=1:keyint=15:open-gop=0:bframes=0:log-level=none',
      '-f',
      'hevc',
      'pipe:1',
    ],
    { encoding: 'buffer', maxBuffer: 16 * 1024 * 1024 },
  );
  const nals = splitAnnexB(stdout);
  const first = (type: number) => nals.filter((nal) => hevc.nalType(nal) === type).slice(0, 1);
  const config = buildHevcConfig({ vps: first(hevc.NAL.vps), sps: first(hevc.NAL.sps), pps: first(hevc.NAL.pps) });
  const units: Buffer[][] = [];
  for (const nal of nals) {
    if (hevc.nalType(nal) === hevc.NAL.delimiter) units.push([]);
    else units.at(-1)?.push(nal);
  }
  const frames = units.map((unit) => ({
    data: hevc.canonicalize(joinNals(unit.filter((nal) => !hevc.isParameterSet(nal))), 4).data,
    key: unit.some((nal) => hevc.nalType(nal) >= 16 && hevc.nalType(nal) <= 23),
    duration: 3000,
    delay: 0,
  }));
  const { track } = await ivf('VP8', { id, seconds: 0.1 });
  return { track: { ...track, codec: 'H265', config }, frames };
}

export async function av1Media(): Promise<Media<VideoTrack>> {
  const { track, frames } = await ivf('AV1', { seconds: 1 });
  const units = frames.map((frame) => ({ ...frame, data: av1.canonicalize(frame.data) }));
  const [first] = units;
  if (first === undefined) throw new Error('no frame');
  return { track: { ...track, config: av1.buildAv1Config(first.data) }, frames: units };
}

export async function opusMedia(): Promise<Media<AudioTrack>> {
  const { track, frames } = await opus(1);
  const config = buildOpusConfig({
    channels: 2,
    preSkip: 312,
    inputSamplerate: 48_000,
    outputGain: 0,
    mappingFamily: 0,
    mapping: undefined,
  });
  return { track: { ...track, config }, frames };
}

/** Files of 70 kB. */
export const PICTURES: Media<ImageTrack> = {
  track: {
    id: 5,
    name: 'picture',
    type: 'image',
    codec: 'PNG',
    timebase: { num: 1, den: 90_000 },
    bypass: false,
    width: 64,
    height: 36,
    bitrate: 0,
    framerate: 1,
    keyFrameInterval: 0,
  },
  frames: [1, 2, 3].map((byte) => ({ data: Buffer.alloc(70_000, byte), key: true, duration: 90_000, delay: 0 })),
};

/** Frames that ffprobe decodes of a raw stream. @throws when it objects to anything */
export async function countFrames(format: string, stream: Buffer): Promise<number> {
  const run = execFileAsync('ffprobe', [
    '-v',
    'warning',
    '-f',
    format,
    '-count_frames',
    '-show_entries',
    'stream=nb_read_frames',
    '-of',
    'csv=p=0',
    '-i',
    'pipe:0',
  ]);
  run.child.stdin?.end(stream);
  const { stdout, stderr } = await run;
  if (/error|invalid|missing/i.test(stderr)) throw new Error(stderr);
  return Number(stdout.trim());
}
