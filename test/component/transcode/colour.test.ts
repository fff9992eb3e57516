import test from 'ava';
import type { VideoTrack } from '../../../src/core/track.ts';
import { OutputAdapter, type BitstreamFormat } from '../../../src/media-child/bitstream.ts';
import type { EncodeJob, VideoEncoding } from '../../../src/transcode/encoding.ts';
import { FFMPEGS } from '../../support/media/ffmpeg.ts';
import { recordNut, runWork, type Output, type Recording } from '../../unit/transcode/run-command.ts';
import { imageJob, PICTURE, videoJob } from './command-support.ts';

type Colour = NonNullable<VideoTrack['colour']>;

const BT709 = { primaries: 1, transfer: 1, matrix: 1, fullRange: false };
const CODECS: readonly Partial<VideoEncoding>[] = [
  { modules: 'x264' },
  { codec: 'H265', modules: 'x265' },
  { codec: 'VP9', modules: undefined },
  { codec: 'AV1', modules: 'svtav1' },
];

/** A second of a flat picture in 10 bits. @param luma of 940 at most in limited range */
function flat(luma: number, encoder: readonly string[]): Promise<Recording> {
  const pattern = `color=size=160x90:rate=10,format=yuv420p10le,geq=lum=${luma}:cb=512:cr=512`;
  return recordNut(['-f', 'lavfi', '-t', '1', '-i', pattern, ...encoder]);
}

const x265 = (colour: string) => [
  ...['-c:v', 'libx265', '-x265-params', `log-level=none:bframes=0:repeat-headers=1:${colour}`],
];

/** What the bitstream of an output tells. */
function formatOf({ encoding }: EncodeJob, { stream, frames }: Output): BitstreamFormat | undefined {
  let told: BitstreamFormat | undefined;
  if (stream === undefined) return undefined;
  const adapter = new OutputAdapter(encoding.codec, stream, { format: (format) => (told = format), packet: () => {} });
  for (const frame of frames) adapter.push({ ...frame, data: Buffer.from(frame.data) });
  return told;
}

const hdr = (transfer: number): Colour => ({ primaries: 9, transfer, matrix: 9, fullRange: false });
const h265 = (colour: Colour): VideoTrack => ({ ...PICTURE, codec: 'H265', framerate: 10, colour });

for (const [name, ffmpeg] of FFMPEGS) {
  test.serial(`${name}: renditions of HDR are SDR, and say so`, async (t) => {
    for (const [transfer, named, luma] of [
      [16, 'smpte2084', 572],
      [18, 'arib-std-b67', 721],
    ] as const) {
      const source = await flat(luma, x265(`colorprim=bt2020:transfer=${named}:colormatrix=bt2020nc`));
      const track = h265(hdr(transfer));
      const jobs = [...CODECS.map((codec) => videoJob(codec, track)), { ...imageJob('PNG'), from: track }];
      const { outputs, stderr } = await runWork(ffmpeg, source, { tracks: [track], jobs });
      t.is(stderr, '');
      const colours = jobs.slice(0, -1).map((job, index) => formatOf(job, outputs[index] as Output)?.colour);
      // the bitstream of VP9 has a matrix and nothing else
      const vp9 = { ...BT709, primaries: 2, transfer: 2 };
      t.deepEqual(colours, [BT709, BT709, vp9, BT709], named);
      const png = outputs.at(-1)?.frames[0]?.data as Buffer;
      const [red = 0, green = 0] = await pixel(png);
      t.true(red > 170 && red < 215 && Math.abs(red - green) <= 2, `white of graphics is ${red} in ${named}`);
    }
  });

  test.serial(`${name}: HDR is mapped where a container alone declares it`, async (t) => {
    const source = await flat(572, ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8']);
    const track: VideoTrack = { ...PICTURE, codec: 'VP9', config: undefined, framerate: 10, colour: hdr(16) };
    const jobs = [videoJob({ modules: 'x264' }, track)];
    const { outputs, stderr } = await runWork(ffmpeg, source, { tracks: [track], jobs });
    t.is(stderr, '');
    t.deepEqual(formatOf(jobs[0] as EncodeJob, outputs[0] as Output)?.colour, BT709);
  });

  test.serial(`${name}: range and matrix of a source stay what they were`, async (t) => {
    const colour = { primaries: 9, transfer: 14, matrix: 9, fullRange: true };
    const source = await flat(1000, x265('range=full:colorprim=bt2020:transfer=bt2020-10:colormatrix=bt2020nc'));
    const track = h265(colour);
    const jobs = CODECS.map((codec) => videoJob(codec, track));
    const { outputs, stderr } = await runWork(ffmpeg, source, { tracks: [track], jobs });
    t.is(stderr, '');
    const vp9 = { ...colour, primaries: 2, transfer: 2 };
    t.deepEqual(
      jobs.map((job, index) => formatOf(job, outputs[index] as Output)?.colour),
      [colour, colour, vp9, colour],
    );
  });
}

/** The first pixel of a PNG, in RGB. */
async function pixel(png: Buffer): Promise<readonly number[]> {
  const { streams, frames } = await recordNut([
    ...['-f', 'image2pipe', '-c:v', 'png', '-i', `data:image/png;base64,${png.toString('base64')}`],
    ...['-c:v', 'rawvideo', '-pix_fmt', 'rgb24'],
  ]);
  return streams.length === 0 ? [] : [...(frames[0]?.data.subarray(0, 3) ?? [])];
}
