import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { OBU, obus } from '../../../src/codecs/av1-obu.ts';
import { Av1Tiles } from '../../../src/codecs/av1-tiles.ts';
import { FFMPEG7 } from '../../support/media/ffmpeg.ts';

const run = promisify(execFile);
const scene = (size: string, more = ''): string[] => [
  '-f',
  'lavfi',
  '-i',
  `testsrc2=s=${size}:r=25${more}`,
  '-frames:v',
  '12',
];
const AOM = ['-c:v', 'libaom-av1', '-cpu-used', '8', '-g', '8'];

const SVT = ['-c:v', 'libsvtav1', '-preset', '10', '-g', '8'];

/** Streams that have much in their frame headers, and how many tiles a frame has. */
const STREAMS: Readonly<Record<string, readonly [args: readonly string[], tiles: number]>> = {
  'SVT-AV1 with frames that are shown later': [[...scene('320x180'), ...SVT], 1],
  'libaom with tiles': [[...scene('512x256'), ...AOM, '-tiles', '4x2'], 8],
  'libaom with a movement of the whole frame': [
    [...scene('160x96', ',rotate=n/40:ow=160:oh=96'), '-c:v', 'libaom-av1', '-cpu-used', '3', '-g', '8'],
    1,
  ],
  'libaom with film grain and 10 bits': [
    [...scene('128x128', ',noise=alls=40:allf=t'), '-pix_fmt', 'yuv420p10le', ...AOM, '-denoise-noise-level', '30'],
    1,
  ],
  'libaom with error resilience': [[...scene('128x96'), ...AOM, '-error-resilience', 'default'], 1],
  'libaom without loss': [[...scene('64x64'), ...AOM, '-aom-params', 'lossless=1'], 1],
  'SVT-AV1 with superres': [
    [...scene('256x128'), ...SVT, '-svtav1-params', 'superres-mode=1:superres-denom=12:superres-kf-denom=14'],
    1,
  ],
  'SVT-AV1 with scaled references': [
    [...scene('256x128'), ...SVT, '-svtav1-params', 'resize-mode=1:resize-denom=12:resize-kf-denom=9'],
    1,
  ],
  'libaom with segments': [[...scene('256x128'), ...AOM, '-aq-mode', '1', '-usage', 'realtime'], 1],
  'libaom of a screen': [[...scene('256x128'), ...AOM, '-aom-params', 'tune-content=screen'], 1],
  'libaom in grey': [[...scene('128x96', ',format=gray'), '-pix_fmt', 'gray', ...AOM], 1],
  'libaom in 4:4:4': [[...scene('128x96'), '-pix_fmt', 'yuv444p', ...AOM], 1],
  'libaom with groups of tiles': [
    [...scene('512x256'), ...AOM, '-tiles', '4x2', '-aom-params', 'num-tile-groups=3'],
    8,
  ],
};

/** Offsets of the first tile in each OBU with tiles, as ffmpeg reads its headers. */
async function judged(file: string): Promise<number[]> {
  const { stderr } = await run(
    FFMPEG7,
    ['-v', 'verbose', '-i', file, '-c', 'copy', '-bsf:v', 'trace_headers', '-f', 'null', '-'],
    {
      maxBuffer: 1e9,
    },
  );
  const offsets: number[] = [];
  let bits = 0;
  let type = 0;
  const finish = (): void => {
    if (type === OBU.frame || type === OBU.tileGroup) offsets.push(Math.ceil(bits / 8));
    [bits, type] = [0, 0];
  };
  for (const [, at = '', name, value = ''] of stderr.matchAll(/^\[trace_headers[^\]]*\] (\d+) +(\S+) +([01]+) = /gm)) {
    if (name === 'obu_forbidden_bit') finish();
    if (name === 'obu_type') type = Number.parseInt(value, 2);
    bits = Number(at) + value.length;
  }
  finish();
  return offsets;
}

for (const [name, [args, tiles]] of Object.entries(STREAMS)) {
  test(`tiles of ${name} begin where ffmpeg's headers end`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'kiln-av1-'));
    t.teardown(() => rm(folder, { recursive: true }));
    const file = join(folder, 'video.obu');
    await run('ffmpeg', ['-v', 'error', ...args, '-f', 'obu', file]);
    const reader = new Av1Tiles();
    const found: number[] = [];
    let ranges = 0;
    let frames = 0;
    for (const obu of obus(await readFile(file))) {
      if (obu.type === OBU.temporalDelimiter) reader.begin();
      const own = reader.read(obu);
      if (obu.type === OBU.frame || obu.type === OBU.frameHeader) frames++;
      if (obu.type !== OBU.frame && obu.type !== OBU.tileGroup) {
        t.deepEqual(own, []);
        continue;
      }
      if (obu.type === OBU.tileGroup && tiles === 1) frames++;
      found.push(obu.data.length - obu.payload.length + (own[0]?.from ?? 0));
      ranges += own.length;
      t.is(own.at(-1)?.to, obu.payload.length);
    }
    t.true(frames >= 12);
    t.is(ranges % tiles, 0);
    t.true(found.length >= 12);
    // of frames with several tiles ffmpeg reads the numbers of the group, and Kiln the size of the first one
    const expected = await judged(file);
    if (tiles === 1) t.deepEqual(found, expected);
    else {
      t.is(found.length, expected.length);
      found.forEach((offset, index) =>
        t.true(offset >= (expected[index] ?? Infinity) && offset <= (expected[index] ?? 0) + 4),
      );
    }
  });
}
