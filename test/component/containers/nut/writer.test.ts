import { execFile } from 'node:child_process';
import test from 'ava';
import { NutError } from '../../../../src/containers/nut/error.ts';
import type { NutStream } from '../../../../src/containers/nut/format.ts';
import { NutWriter } from '../../../../src/containers/nut/writer.ts';
import { FFMPEG7 } from '../../../support/media/ffmpeg.ts';
import { read, vector } from '../../../unit/containers/nut/support.ts';

const STREAMS: readonly NutStream[] = [
  {
    kind: 'video',
    codecTag: 'H264',
    timebase: { num: 1, den: 90_000 },
    extradata: Buffer.of(1, 2, 3),
    decodeDelay: 2,
    width: 640,
    height: 360,
  },
  {
    kind: 'audio',
    codecTag: 'Opus',
    timebase: { num: 1, den: 48_000 },
    extradata: Buffer.alloc(0),
    decodeDelay: 0,
    samplerate: 48_000,
    channels: 2,
  },
];
const hex = (bytes: Buffer) => bytes.toString('hex');

test('the header is what the specification says, byte by byte', (t) => {
  const expected = [
    Buffer.from('nut/multimedia container\0').toString('hex'),
    // main: size, version 4.0, 2 streams, max_distance, 2 timebases
    '4e4d7a561f5f04ad',
    '2f',
    '04',
    '00',
    '02',
    '848000',
    '02',
    '0185bf10',
    '0182f700',
    // frame codes: a frame, a key frame, 253 that are none
    '7806000100000001',
    '7906000100000001',
    'c000060001000000817d',
    // no elision headers, pipe mode
    '00',
    '02',
  ].join('');
  const header = hex(new NutWriter(STREAMS).header());
  t.true(header.startsWith(expected), `${header}\n${expected}`);
  const streams = [
    '4e5311405bf2f9db',
    '1b',
    '00',
    '00',
    '0448323634',
    '00',
    '00',
    '01',
    '02',
    '00',
    '03010203',
    '8500',
    '8268',
    '000000',
  ].join('');
  t.true(header.includes(streams), header);
  t.true(
    header.includes(
      [
        '4e5311405bf2f9db',
        '16',
        '01',
        '01',
        '044f707573',
        '01',
        '00',
        '01',
        '00',
        '00',
        '00',
        '82f700',
        '01',
        '02',
      ].join(''),
    ),
    header,
  );
  t.true(header.endsWith(['4e4be4adeeca4569', '06', '0000', '00000000'].join('')), header);
});

test('a frame head is its code, stream, time, size and checksum', (t) => {
  const writer = new NutWriter(STREAMS);
  t.is(hex(writer.head(0, 90_000, true, 1000)).slice(0, -8), '010085bf118768');
  t.is(hex(writer.head(1, 0, false, 5)).slice(0, -8), '00010105');
});

test('NUT that was written is read again, however it is cut', (t) => {
  const writer = new NutWriter(STREAMS);
  const parts = [writer.header()];
  const frames = [0, 1, 127, 128, 4096, 4097, 70_000].map((size, index) => ({
    stream: index % 2,
    // longer than 32 bits, and back
    pts: index === 3 ? 2 ** 52 + 1 : index * 3003,
    key: index % 3 === 0,
    data: Buffer.alloc(size, index),
  }));
  for (const { stream, pts, key, data } of frames) parts.push(writer.head(stream, pts, key, data.length), data);
  const nut = Buffer.concat(parts);
  for (const size of [nut.length, 1, 7, 4096]) t.deepEqual(read(nut, size), { streams: STREAMS, frames });
});

test('heads that were handed out stay as they are', (t) => {
  const writer = new NutWriter(STREAMS);
  const heads = Array.from({ length: 3000 }, (_, index) => writer.head(0, index * 3000, false, index));
  const copies = new NutWriter(STREAMS);
  t.true(heads.every((head, index) => head.equals(copies.head(0, index * 3000, false, index))));
});

test('a time that NUT cannot express is refused', (t) => {
  const writer = new NutWriter(STREAMS);
  for (const pts of [-1, 0.5, NaN, 2 ** 60]) t.throws(() => writer.head(0, pts, true, 1), { instanceOf: NutError });
});

/** The packets that an ffmpeg reads from its standard input, which cannot seek. */
function framemd5(ffmpeg: string, nut: Buffer): Promise<{ lines: string[]; stderr: string }> {
  return new Promise((resolve, reject) => {
    const args = [
      '-v',
      'warning',
      '-copyts',
      '-f',
      'nut',
      '-i',
      'pipe:0',
      '-map',
      '0',
      '-c',
      'copy',
      '-bitexact',
      '-f',
      'framemd5',
      '-',
    ];
    const child = execFile(ffmpeg, args, (error, stdout, stderr) => {
      if (error) reject(error);
      else resolve({ lines: packetLines(stdout), stderr });
    });
    child.stdin?.end(nut);
  });
}

/** Stream, pts, size and hash of each packet. */
function packetLines(framehashes: string): string[] {
  return Array.from(framehashes.matchAll(/^(\d), +-?\d+, +(\d+), +\d+, +(\d+), (\S{32})/gm), (match) =>
    match.slice(1).join(' '),
  );
}

for (const [version, ffmpeg] of [
  ['5.1', 'ffmpeg'],
  ['7.0', FFMPEG7],
] as const) {
  for (const name of ['h264-aac', 'opus-v4', 'vp8-pipe']) {
    test(`ffmpeg ${version} reads ${name} as it was written, without a word`, async (t) => {
      const { streams, frames } = read(vector(`${name}-${version}.nut`));
      const writer = new NutWriter(streams);
      const parts = frames.flatMap(({ stream, pts, key, data }) => [writer.head(stream, pts, key, data.length), data]);
      const { lines, stderr } = await framemd5(ffmpeg, Buffer.concat([writer.header(), ...parts]));
      t.deepEqual(lines, packetLines(vector(`${name}-${version}.framemd5`).toString()));
      t.is(stderr, '');
    });
  }
}
