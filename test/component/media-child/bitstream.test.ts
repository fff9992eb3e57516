import { execFile } from 'node:child_process';
import test from 'ava';
import { buildAvcConfig } from '../../../src/codecs/h264-config.ts';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import { parseAvcConfig } from '../../../src/codecs/h264.ts';
import { annexBToLengths, nalUnits, splitAnnexB } from '../../../src/codecs/nal.ts';
import { initSegment } from '../../../src/containers/fmp4/init.ts';
import type { NutStream } from '../../../src/containers/nut/format.ts';
import { NutReader, type NutFrame } from '../../../src/containers/nut/reader.ts';
import { NutWriter } from '../../../src/containers/nut/writer.ts';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import { isMedia, type MediaTrack } from '../../../src/core/track.ts';
import { OutputAdapter, type BitstreamFormat, type EncodedPacket } from '../../../src/media-child/bitstream.ts';
import type { Encoding } from '../../../src/transcode/encoding.ts';
import { nutStreamOf } from '../../../src/transcode/nut-stream.ts';
import { box, samples, seeded, vector } from '../../unit/codecs/vectors.ts';
import { FFMPEG7 } from '../../support/media/ffmpeg.ts';
import { audioTrack, videoTrack } from '../../support/media/packets.ts';

type Codec = Encoding['codec'];

interface Adapted {
  readonly formats: BitstreamFormat[];
  readonly packets: EncodedPacket[];
}

const FFMPEGS = [
  ['5.1', 'ffmpeg'],
  ['7.0', FFMPEG7],
] as const;
const FRAMES = 24;
const PICTURE = ['-f', 'lavfi', '-i', 'testsrc2=size=160x96:rate=25'];
const SOUND = ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000', '-ac', '2', '-t', '0.5'];
const VIDEO = [
  ...PICTURE,
  '-frames:v',
  String(FRAMES),
  '-pix_fmt',
  'yuv420p',
  '-enc_time_base',
  '1:90000',
  '-fps_mode',
  'passthrough',
  '-g',
  '12',
];
const STILLS = [...PICTURE, '-frames:v', '3', '-enc_time_base', '1:90000'];

/** Encoders and what they are asked for, by a name for the test. */
const ENCODERS: Record<string, { readonly codec: Codec; readonly args: readonly string[]; readonly only7?: true }> = {
  libx264: { codec: 'H264', args: [...VIDEO, '-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency'] },
  'libx264 in slices': {
    codec: 'H264',
    args: [...VIDEO, '-c:v', 'libx264', '-preset', 'ultrafast', '-slices', '3', '-bf', '0'],
  },
  'libx264 with B-frames': { codec: 'H264', args: [...VIDEO, '-c:v', 'libx264', '-preset', 'veryfast', '-bf', '3'] },
  libopenh264: { codec: 'H264', args: [...VIDEO, '-c:v', 'libopenh264', '-b:v', '200k'], only7: true },
  libx265: {
    codec: 'H265',
    args: [...VIDEO, '-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none:open-gop=0:bframes=0'],
  },
  'libx265 with B-frames': {
    codec: 'H265',
    args: [...VIDEO, '-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none:open-gop=0'],
  },
  'libaom-av1': {
    codec: 'AV1',
    args: [...VIDEO, '-c:v', 'libaom-av1', '-usage', 'realtime', '-cpu-used', '8', '-lag-in-frames', '0'],
  },
  libsvtav1: { codec: 'AV1', args: [...VIDEO, '-c:v', 'libsvtav1', '-preset', '12'] },
  libvpx: { codec: 'VP8', args: [...VIDEO, '-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8'] },
  'libvpx-vp9': { codec: 'VP9', args: [...VIDEO, '-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8'] },
  aac: { codec: 'AAC', args: [...SOUND, '-c:a', 'aac'] },
  libopus: { codec: 'OPUS', args: [...SOUND, '-c:a', 'libopus'] },
  'libopus with frames of 60 ms': { codec: 'OPUS', args: [...SOUND, '-c:a', 'libopus', '-frame_duration', '60'] },
  libmp3lame: { codec: 'MP3', args: [...SOUND, '-c:a', 'libmp3lame'] },
};
const REORDERED: Record<string, number> = { 'libx264 with B-frames': 2, 'libx265 with B-frames': 2 };
const SAMPLES: Record<string, number> = {
  aac: 1024,
  libopus: 960,
  'libopus with frames of 60 ms': 2880,
  libmp3lame: 1152,
};

function ffmpeg(path: string, args: readonly string[], input?: Buffer): Promise<{ stdout: Buffer; stderr: string }> {
  return new Promise((resolve, reject) => {
    const options = { encoding: 'buffer', maxBuffer: 2 ** 26, env: { ...process.env, SVT_LOG: '0' } } as const;
    const child = execFile(path, ['-hide_banner', '-v', 'error', ...args], options, (error, stdout, stderr) => {
      if (error) reject(error);
      else resolve({ stdout, stderr: stderr.toString() });
    });
    if (input !== undefined) child.stdin?.end(input);
  });
}

/** What a decoder makes of NUT: hashes of the pictures or sounds, in order of their times. */
async function decoded(path: string, nut: Buffer): Promise<{ hashes: string[]; stderr: string }> {
  const { stdout, stderr } = await ffmpeg(
    path,
    ['-copyts', '-f', 'nut', '-i', 'pipe:0', '-fps_mode', 'passthrough', '-bitexact', '-f', 'framemd5', '-'],
    nut,
  );
  const lines = stdout
    .toString()
    .split('\n')
    .filter((line) => /^\d/.test(line));
  return { hashes: lines.map((line) => line.replace(/.*, */, '')), stderr };
}

function unpack(nut: Buffer): { stream: NutStream; frames: NutFrame[] } {
  let stream: NutStream | undefined;
  const frames: NutFrame[] = [];
  new NutReader({ streams: ([only]) => (stream = only), frame: (frame) => frames.push(frame) }).push(Buffer.from(nut));
  return { stream: stream as NutStream, frames };
}

function adapt(codec: Codec, stream: NutStream, frames: readonly NutFrame[]): Adapted {
  const formats: BitstreamFormat[] = [];
  const packets: EncodedPacket[] = [];
  const adapter = new OutputAdapter(codec, stream, {
    format: (format) => formats.push(format),
    packet: (packet) => packets.push(packet),
  });
  for (const frame of frames) adapter.push(frame);
  adapter.end();
  return { formats, packets };
}

function pack(stream: NutStream, packets: readonly Pick<EncodedPacket, 'pts' | 'key' | 'data'>[]): Buffer {
  const writer = new NutWriter([stream]);
  const parts = packets.flatMap(({ pts, key, data }) => [writer.head(0, pts, key !== false, data.length), data]);
  return Buffer.concat([writer.header(), ...parts]);
}

/** The track that a publisher sees. */
function trackOf(codec: Codec, { timebase, config, width, height, samplerate, channels }: BitstreamFormat): MediaTrack {
  const track =
    width === undefined
      ? { ...audioTrack({ timebase, config, samplerate, channels }), codec }
      : { ...videoTrack({ timebase, config, width, height }), codec };
  if (!isMedia(track as MediaTrack)) throw new Error(`${codec} does not play`);
  return track as MediaTrack;
}

for (const [version, path] of FFMPEGS) {
  for (const [name, { codec, args, only7 }] of Object.entries(ENCODERS)) {
    if (only7 && version !== '7.0') continue;
    test.serial(
      `${name} of ffmpeg ${version}: packets are canonical, and ffmpeg decodes them as it does its own`,
      async (t) => {
        const { stdout: nut } = await ffmpeg(path, [...args, '-f', 'nut', '-']);
        const { stream, frames } = unpack(nut);
        const { formats, packets } = adapt(codec, stream, frames);
        t.is(formats.length, 1);
        const format = formats[0] as BitstreamFormat;
        const samples = SAMPLES[name];
        if (samples === undefined) {
          t.like(format, { width: 160, height: 96, timebase: VIDEO_TIMEBASE });
          t.is(packets.length, FRAMES);
          const reordered = REORDERED[name] ?? 0;
          const times = packets.map(({ pts }) => pts).sort((a, b) => a - b);
          const start = times[0] as number;
          t.deepEqual(
            packets.flatMap(({ key, pts }) => (key ? [pts - start] : [])),
            [0, 12 * 3600],
          );
          t.deepEqual(
            packets.slice(reordered).map(({ dts }) => dts),
            times.slice(0, FRAMES - reordered),
          );
          t.true(packets.every(({ dts, pts }, index) => dts <= pts && dts > (packets[index - 1]?.dts ?? -Infinity)));
          t.is(
            packets.some(({ dts, pts }) => pts - dts !== 0),
            reordered > 0,
          );
        } else {
          t.like(format, { samplerate: 48_000, channels: 2, timebase: { num: 1, den: 48_000 } });
          t.true(packets.every(({ dts, pts, duration, key }) => dts === pts && duration === samples && key));
        }
        const track = trackOf(codec, format);
        if (codec !== 'VP8' && codec !== 'MP3') t.notThrows(() => initSegment(track));
        const [own, canonical] = [await decoded(path, nut), await decoded(path, pack(nutStreamOf(track), packets))];
        t.deepEqual(canonical.hashes, own.hashes);
        t.true(canonical.hashes.length >= (samples === undefined ? FRAMES : packets.length));
        t.is(canonical.stderr, '');
      },
    );
  }

  for (const [codec, magic, args] of [
    ['JPEG', 'ffd8ff', ['-c:v', 'mjpeg']],
    ['PNG', '89504e47', ['-c:v', 'png']],
    // ffmpeg has no codec tag for it, but takes one
    ['WEBP', '52494646', ['-c:v', 'libwebp', '-tag:v', 'WEBP']],
    ['AVIF', '0000001c66747970', ['-c:v', 'libaom-av1', '-usage', 'realtime', '-cpu-used', '8', '-g', '1']],
  ] as const) {
    test.serial(`${codec} of ffmpeg ${version}: every packet is a file`, async (t) => {
      const { stdout } = await ffmpeg(path, [...STILLS, ...args, '-f', 'nut', '-']);
      const { stream, frames } = unpack(stdout);
      const { formats, packets } = adapt(codec, stream, frames);
      t.like(formats[0], { width: 160, height: 96, timebase: VIDEO_TIMEBASE });
      t.is(formats.length, 1);
      t.deepEqual(
        packets.map(({ pts, dts, key }) => [pts, dts, key]),
        [
          [0, 0, true],
          [3600, 3600, true],
          [7200, 7200, true],
        ],
      );
      for (const { data } of packets) t.true(data.toString('hex').startsWith(magic), data.toString('hex', 0, 8));
    });
  }

  test.serial(`MP2 as ffmpeg ${version} takes it`, async (t) => {
    const { stdout } = await ffmpeg(path, [...SOUND, '-c:a', 'mp2', '-f', 'nut', '-']);
    const { frames } = unpack(stdout);
    const stream = nutStreamOf({ ...audioTrack({ config: undefined }), codec: 'MP2' });
    const { hashes, stderr } = await decoded(path, pack(stream, frames));
    t.deepEqual(hashes, (await decoded(path, stdout)).hashes);
    t.is(stderr, '');
  });
}

const STREAM: NutStream = {
  kind: 'video',
  codecTag: 'H264',
  timebase: VIDEO_TIMEBASE,
  extradata: Buffer.alloc(0),
  decodeDelay: 0,
  width: 16,
  height: 16,
};
const avc = parseAvcConfig(box(vector('h264-baseline.mp4'), 'avcC'));
const other = parseAvcConfig(box(vector('h264-open-gop.mp4'), 'avcC'));
const START = Buffer.of(0, 0, 0, 1);
const annexB = (...nals: Uint8Array[]) => Buffer.concat(nals.flatMap((nal) => [START, nal]));
const frameOf = (data: Buffer, pts = 0): NutFrame => ({ stream: 0, pts, key: true, data });
const [first, second] = samples(vector('h264-baseline.mp4')).map(
  (sample) => [...nalUnits(sample)].at(-1) as Buffer,
) as [Buffer, Buffer];

test('start codes of 4 bytes become lengths in place', (t) => {
  const data = annexB(first, second);
  const { packets } = adapt('H264', { ...STREAM, extradata: annexB(...avc.sps, ...avc.pps) }, [frameOf(data)]);
  t.is(packets[0]?.data.buffer, data.buffer);
  t.deepEqual([...nalUnits(packets[0]?.data as Buffer)], [first, second]);
});

test('a frame that begins like a length is Annex B where the extradata are', (t) => {
  // 00 00 01 65 is also a length of 357 bytes
  const data = Buffer.concat([Buffer.of(0, 0, 1), first]);
  const { packets } = adapt('H264', { ...STREAM, extradata: annexB(...avc.sps, ...avc.pps) }, [frameOf(data)]);
  t.deepEqual([...nalUnits(packets[0]?.data as Buffer)], [first]);
});

test('length-prefixed packets pass as they are where the extradata are a record', (t) => {
  const sample = annexBToLengths(annexB(first));
  const { packets, formats } = adapt('H264', { ...STREAM, extradata: buildAvcConfig(avc) }, [frameOf(sample)]);
  t.is(packets[0]?.data, sample);
  t.like(formats[0], { width: 66, height: 50 });
});

test('parameter sets that change in mid-stream are announced before their frame', (t) => {
  const events: string[] = [];
  const adapter = new OutputAdapter(
    'H264',
    { ...STREAM, extradata: annexB(...avc.sps, ...avc.pps) },
    {
      format: ({ width, height, config }) =>
        events.push(`${width}x${height} ${parseAvcConfig(config as Buffer).sps.length}`),
      packet: ({ pts }) => events.push(String(pts)),
    },
  );
  adapter.push(frameOf(annexB(first), 0));
  adapter.push(frameOf(annexB(...avc.sps, ...avc.pps, first), 1));
  adapter.push(frameOf(annexB(...other.sps, ...other.pps, first), 2));
  adapter.end();
  t.deepEqual(events, ['66x50 1', '0', '1', '64x48 1', '2']);
});

test('a frame in front of every configuration is refused', (t) => {
  t.throws(() => adapt('H264', STREAM, [frameOf(annexB(first))]), { instanceOf: BitstreamError });
  t.throws(() => adapt('AVIF', STREAM, [frameOf(samples(vector('av1-svt.mp4'))[1] as Buffer)]), {
    instanceOf: BitstreamError,
  });
});

test('packets that wait for others are handed over in the end', (t) => {
  const { packets } = adapt('H264', { ...STREAM, extradata: annexB(...other.sps, ...other.pps) }, [
    frameOf(annexB(first), 9000),
    frameOf(annexB(second), 15_000),
  ]);
  t.deepEqual(
    packets.map(({ pts, dts }) => [pts, dts <= pts]),
    [
      [9000, true],
      [15_000, true],
    ],
  );
});

/** Extradata and packets of each codec to start from. */
const VALID: Record<string, [codec: Codec, extradata: Buffer, packets: Buffer[]]> = {
  'H.264': [
    'H264',
    annexB(...other.sps, ...other.pps),
    samples(vector('h264-open-gop.mp4'))
      .slice(0, 6)
      .map((sample) => annexB(...nalUnits(sample))),
  ],
  'H.264 with a record': ['H264', buildAvcConfig(other), samples(vector('h264-open-gop.mp4')).slice(0, 6)],
  'H.265': ['H265', Buffer.alloc(0), [vector('h265-main.h265')]],
  AV1: ['AV1', box(vector('av1-svt.mp4'), 'av1C'), samples(vector('av1-svt.mp4'))],
  AVIF: ['AVIF', Buffer.alloc(0), samples(vector('av1-aom-444.mp4')).slice(0, 1)],
  AAC: ['AAC', Buffer.from('1190', 'hex'), [Buffer.from('21108005', 'hex')]],
  Opus: ['OPUS', vector('opus-51.ogg').subarray(28, 55), samples(vector('opus-stereo.mp4'))],
};

for (const [name, [codec, extradata, packets]] of Object.entries(VALID)) {
  test(`${name}: what an encoder never puts out is packets or a BitstreamError`, (t) => {
    const random = seeded(20_261_120);
    const upTo = (limit: number) => Math.floor(random() * limit);
    const spoil = (data: Buffer) => {
      const copy = Buffer.from(data.subarray(0, random() < 0.2 ? upTo(data.length + 1) : data.length));
      for (let changes = upTo(5); changes > 0 && copy.length > 0; changes--)
        copy[upTo(Math.min(copy.length, 200))] = upTo(256);
      return copy;
    };
    const feed = (head: Buffer, data: readonly Buffer[]) =>
      adapt(
        codec,
        { ...STREAM, extradata: head },
        data.map((one, index) => frameOf(one, index)),
      );
    t.true(
      feed(
        extradata,
        packets.map((data) => Buffer.from(data)),
      ).packets.length > 0,
    );
    for (let round = 0; round < 1000; round++) {
      try {
        feed(spoil(extradata), packets.map(spoil));
      } catch (error) {
        if (!(error instanceof BitstreamError)) throw error;
      }
    }
  });
}

test('Annex B in place is what was split', (t) => {
  const data = vector('h264-baseline.h264');
  const nals = splitAnnexB(Buffer.from(data)).map((nal) => nal.toString('hex'));
  t.deepEqual(
    Array.from(nalUnits(annexBToLengths(Buffer.from(data))), (nal) => nal.toString('hex')),
    nals,
  );
});
