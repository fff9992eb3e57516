import { createHash } from 'node:crypto';
import test from 'ava';
import { NutError } from '../../../../src/containers/nut/error.ts';
import { FLAG, ID } from '../../../../src/containers/nut/format.ts';
import { NutReader, type NutFrame } from '../../../../src/containers/nut/reader.ts';
import { v, vb } from '../../../../src/containers/nut/vlc.ts';
import { checksum, file, mainHeader, NAMES, packet, read, streamHeader, vector, type Entry } from './support.ts';

const md5 = (data: Buffer) => createHash('md5').update(data).digest('hex');
const text = (value: string) => Buffer.from(value);
const told = (frames: readonly NutFrame[]) => frames.map(({ pts, key, data }) => [pts, key, data.toString()]);

/** Frame codes in which everything is in the frame's head. */
const CODED: Entry = { flags: FLAG.coded };
const FULL = FLAG.codedPts | FLAG.streamId | FLAG.sizeMsb;

for (const name of NAMES) {
  test(`${name}: what ffmpeg wrote is read as ffmpeg reads it`, (t) => {
    const judge = vector(`${name}.framemd5`).toString();
    const { streams, frames } = read(vector(`${name}.nut`));
    const lines = judge.matchAll(/^(\d), +-?\d+, +(\d+), +\d+, +(\d+), ([0-9a-f]{32})/gm);
    t.deepEqual(
      frames.map(({ stream, pts, data }) => [stream, pts, data.length, md5(data)]),
      Array.from(lines, ([, stream, pts, size, hash]) => [Number(stream), Number(pts), Number(size), hash as string]),
    );
    t.true(frames.length >= 4);
    for (const [index, { timebase, extradata }] of streams.entries()) {
      t.regex(judge, new RegExp(`^#tb ${index}: ${timebase.num}/${timebase.den}$`, 'm'));
      if (extradata.length > 0)
        t.regex(judge, new RegExp(`^#extradata ${index}, +${extradata.length}, ${md5(extradata)}$`, 'm'));
    }
  });

  test(`${name}: the frames are the same in chunks of whatever size`, (t) => {
    const nut = vector(`${name}.nut`);
    const whole = read(nut);
    for (let size = 1; size < nut.length; size += size < 300 ? 1 : 97)
      t.deepEqual(read(nut, size), whole, `${size} bytes`);
  });

  test(`${name}: what is cut off ends with the last whole frame`, (t) => {
    const nut = vector(`${name}.nut`);
    const { frames } = read(nut);
    let before = 0;
    for (let size = 0; size <= nut.length; size++) {
      const cut = read(nut.subarray(0, size)).frames;
      t.true(cut.length === before || cut.length === before + 1);
      t.deepEqual(cut.at(-1), frames[cut.length - 1]);
      before = cut.length;
    }
    t.is(before, frames.length);
  });
}

test('streams are described with what ffmpeg knows of them', (t) => {
  const [video, audio] = read(vector('h264-aac-7.0.nut')).streams;
  t.like(video, {
    kind: 'video',
    codecTag: 'H264',
    width: 64,
    height: 48,
    decodeDelay: 2,
    timebase: { num: 1, den: 90_000 },
  });
  t.like(audio, { kind: 'audio', codecTag: '\xff\0\0\0', samplerate: 48_000, channels: 1, decodeDelay: 0 });
});

test('a frame that lies in one chunk is a slice of it', (t) => {
  const frames: NutFrame[] = [];
  const reader = new NutReader({ streams: () => undefined, frame: (frame) => frames.push(frame) });
  const nut = file([CODED], [v(0, FULL, 0, 129, 3), text('abc')]);
  reader.push(nut);
  t.is(frames[0]?.data.buffer, nut.buffer);
});

test('the table gives what a frame head does not', (t) => {
  const table = [
    { flags: FLAG.key, delta: 40, size: 2 },
    { flags: FLAG.sizeMsb, delta: -10, multiplier: 3, size: 0, count: 3 },
    CODED,
  ];
  const { frames } = read(
    file(table, [
      v(0),
      text('ab'),
      v(2, 1),
      text('cdef'),
      v(4, FLAG.key | FLAG.sizeMsb | FLAG.matchTime, 1, 5),
      text('g'),
    ]),
  );
  t.deepEqual(told(frames), [
    [40, true, 'ab'],
    [30, false, 'cdef'],
    [30, true, 'g'],
  ]);
});

test('the letter N is no frame code, and the table goes on behind it', (t) => {
  const table = [{ flags: FLAG.key, multiplier: 200, size: 1, count: 100 }];
  const { frames } = read(file(table, [v(77), Buffer.alloc(78, 'x'), Buffer.of(79), Buffer.alloc(79, 'y')]));
  t.deepEqual(
    frames.map(({ data }) => data.length),
    [78, 79],
  );
});

test('the lowest bits of a time mean the one nearest to the last', (t) => {
  const at = (coded: number) => v(0, FLAG.codedPts, coded);
  const pts = (coded: readonly number[]) => read(file([CODED], coded.map(at))).frames.map((frame) => frame.pts);
  // whole times stand 128 higher
  t.deepEqual(pts([128 + 1000]), [1000]);
  t.deepEqual(pts([128 + 1000, (1000 + 64) % 128]), [1000, 1064]);
  t.deepEqual(pts([128 + 1000, (1000 - 63) % 128]), [1000, 937]);
  t.deepEqual(pts([128 + 1000, (1000 + 65) % 128]), [1000, 937]);
});

test("times go on from those of a syncpoint, in each stream's timebase, rounded down", (t) => {
  const tables = Buffer.concat([
    v(FLAG.streamId | FLAG.sizeMsb, 8, 0, 1, 0, 0, 0, 1, 0, 0),
    v(8192, 8, 0, 1, 0, 0, 0, 254, 0, 0),
  ]);
  const main = packet('main', v(3, 2, 65_536, 2, 1, 1000, 1, 90_001), tables, v(0));
  const stream = (index: number) =>
    packet('stream', v(index, 0, 4), text('VP80'), v(index, 7, 9, 0, 0, 0, 16, 16, 0, 0, 0));
  const frames = Buffer.concat([v(0, 0, 0), v(0, 1, 0)]);
  const { frames: found } = read(
    Buffer.concat([
      ID,
      main,
      stream(0),
      stream(1),
      packet('syncpoint', v(7777 * 2, 0)),
      frames,
      packet('syncpoint', v(1_000_003 * 2 + 1, 0)),
      frames,
    ]),
  );
  t.deepEqual(
    found.map(({ stream: index, pts }) => [index, pts]),
    [
      [0, 7777],
      [1, Math.floor(7777 * 90.001)],
      [0, Math.floor(1_000_003 / 90.001)],
      [1, 1_000_003],
    ],
  );
});

test('elided beginnings come back, except on long frames', (t) => {
  const table = [CODED, { flags: FLAG.sizeMsb, header: 2 }];
  const { frames } = read(
    file(
      table,
      [
        v(0, FLAG.sizeMsb | FLAG.headerIndex, 5, 1),
        text('cd'),
        v(1, 4),
        text('yz'),
        v(1, 5000),
        Buffer.alloc(5000, 'l'),
      ],
      [text('abc'), text('wx')],
    ),
  );
  t.deepEqual(
    frames.map(({ data }) => data.subarray(0, 6).toString()),
    ['abccd', 'wxyz', 'llllll'],
  );
  t.is(frames[2]?.data.length, 5000);
});

test('reserved fields, side data and metadata are passed over', (t) => {
  const list = Buffer.concat([
    v(5),
    vb(text('a')),
    v(2),
    vb(text('text')),
    vb(text('b')),
    v(4),
    vb(text('type')),
    vb(text('binary')),
    vb(text('c')),
    v(6),
    v(7),
    vb(text('d')),
    v(8),
    v(300),
    vb(text('e')),
    v(10),
    v(3),
  ]);
  const side = Buffer.concat([list, v(1), vb(text('f')), v(9)]);
  const { frames } = read(
    file(
      [CODED, { flags: FLAG.sizeMsb, reserved: 2 }],
      [
        v(0, FLAG.sizeMsb | FLAG.reserved, 2, 3, 1, 200, 3),
        text('ab'),
        v(1, 1, 9, 9),
        text('c'),
        v(0, FLAG.sizeMsb | FLAG.sideData, side.length + 2),
        side,
        text('de'),
      ],
    ),
  );
  t.deepEqual(
    frames.map(({ data }) => data.toString()),
    ['ab', 'c', 'de'],
  );
});

test('info, index, repeated headers and the end of relevance are passed over', (t) => {
  const frame = (letter: string) => Buffer.concat([v(0, FLAG.sizeMsb, 1), text(letter)]);
  const nut = file(
    [CODED],
    [
      frame('a'),
      packet('info', text('whatever')),
      mainHeader(1, [CODED]),
      streamHeader(0),
      packet('syncpoint', v(0, 0)),
      frame('b'),
      v(0, FLAG.endOfRelevance),
      packet('index', Buffer.alloc(10_000)),
      frame('c'),
    ],
  );
  for (const size of [nut.length, 1, 1000])
    t.deepEqual(
      read(nut, size).frames.map(({ data }) => data.toString()),
      ['a', 'b', 'c'],
    );
});

test('checksums are checked where there are any', (t) => {
  const head = v(0, FLAG.sizeMsb | FLAG.checksum, 2);
  const frame = Buffer.concat([head, checksum(head), text('ab')]);
  t.is(read(file([CODED], [frame])).frames.length, 1);
  const spoilt = (bytes: Buffer, at: number) => {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] as number) ^ 1;
    return copy;
  };
  t.throws(() => read(file([CODED], [spoilt(frame, 4)])), {
    instanceOf: NutError,
    message: /checksum of a frame head/,
  });
  t.throws(() => read(file([CODED], [spoilt(packet('syncpoint', v(0, 0)), 9)])), {
    message: /checksum of a packet is/,
  });
  t.throws(() => read(file([CODED], [spoilt(packet('index', Buffer.alloc(5000)), 9)])), {
    message: /checksum of a packet head/,
  });
});

const header = (...content: Buffer[]) => Buffer.concat([ID, packet('main', ...content)]);
const MALFORMED: Record<string, [nut: Buffer, message: RegExp]> = {
  'something else': [Buffer.alloc(100, 'RIFF'), /not NUT/],
  'a version to come': [header(v(5)), /version 5/],
  'no main header': [Buffer.concat([ID, streamHeader(0)]), /without a main header/],
  'no stream header': [
    Buffer.concat([ID, mainHeader(1, [CODED]), packet('syncpoint', v(0, 0))]),
    /stream header is missing/,
  ],
  'a frame in front of a syncpoint': [
    Buffer.concat([ID, mainHeader(1, [CODED]), streamHeader(0), v(0, 0)]),
    /first syncpoint/,
  ],
  'too many streams': [header(v(3, 65)), /count of streams is 65/],
  'too many timebases': [header(v(3, 1, 0, 2 ** 40)), /count of timebases/],
  'a timebase of nothing': [header(v(3, 1, 0, 1, 1, 0)), /timebase is 0/],
  'a table that is too long': [header(v(3, 1, 0, 1, 1, 1, 0, 6, 0, 1, 0, 0, 0, 300)), /frame code table/],
  'a table of empty runs': [header(v(3, 1, 0, 1, 1, 1, 0, 6, 0, 1, 0, 0, 0, 0)), /frame code table/],
  'a packet of no known kind': [
    file([CODED], [Buffer.from('4e0000000000000004', 'hex'), Buffer.alloc(4)]),
    /unknown packet/,
  ],
  'a packet without a checksum': [file([CODED], [Buffer.from('4e0000000000000003', 'hex')]), /packet of 3 bytes/],
  'a frame of a stream that is none': [file([CODED], [v(0, FLAG.streamId, 1)]), /frame head is malformed/],
  'an elision header that is none': [file([CODED], [v(0, FLAG.headerIndex, 1)]), /frame head is malformed/],
  'a frame shorter than what is elided': [
    file([{ flags: FLAG.sizeMsb, header: 1 }], [v(0, 2)], [text('abc')]),
    /frame head is malformed/,
  ],
  'an unused frame code': [file([CODED], [v(7)]), /invalid frame code/],
  'a frame code made unused': [file([CODED], [v(0, FLAG.invalid)]), /invalid frame code/],
  'a frame too large': [file([CODED], [v(0, FLAG.sizeMsb, 33 * 1024 * 1024)]), /frame of \d+ bytes/],
  'reserved fields without end': [file([CODED], [v(0, FLAG.reserved, 1000)]), /count of reserved fields/],
  'side data longer than the frame': [file([CODED], [v(0, FLAG.sizeMsb | FLAG.sideData, 2), v(1, 9)]), /side data/],
  'a time beyond numbers': [
    file([CODED], [v(0, FLAG.codedPts, Number.MAX_SAFE_INTEGER), Buffer.from([0, 8, ...Array(9).fill(0xff), 0])]),
    /time of a frame/,
  ],
};

for (const [what, [nut, message]] of Object.entries(MALFORMED)) {
  test(`NUT with ${what} is rejected, whole and byte by byte`, (t) => {
    t.throws(() => read(nut), { instanceOf: NutError, message });
    t.throws(() => read(nut, 1), { instanceOf: NutError, message });
  });
}

test('a length is believed only when its bytes come', (t) => {
  const before = process.memoryUsage().arrayBuffers;
  const claims = file([CODED], [v(0, FLAG.sizeMsb, 32 * 1024 * 1024)]);
  const readers = Array.from({ length: 50 }, () => {
    const reader = new NutReader({ streams: () => undefined, frame: () => t.fail() });
    reader.push(claims);
    return reader;
  });
  t.is(readers.length, 50);
  t.true(process.memoryUsage().arrayBuffers - before < 8 * 1024 * 1024);
});
