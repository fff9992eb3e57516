import test from 'ava';
import { BitWriter } from '../../../../src/codecs/bits.ts';
import { parseSps } from '../../../../src/codecs/h264.ts';
import { joinNals, nalUnits, splitAnnexB } from '../../../../src/codecs/nal.ts';
import { AccessUnits, type AccessUnit } from '../../../../src/containers/mpegts/access-units.ts';
import type { PesHeader } from '../../../../src/containers/mpegts/pes-header.ts';

function setUp(codec: 'H264' | 'H265' = 'H264') {
  const units: AccessUnit[] = [];
  const damaged: string[] = [];
  const cutter = new AccessUnits(codec, {
    unit: (unit) => units.push(unit),
    damaged: (reason) => damaged.push(reason),
  });
  const push = (payload: Buffer, pts?: number, dts = pts) =>
    cutter.push({ pts, dts, announcedBytes: payload.length + 8 } as PesHeader, payload);
  /** In a packet of open length. */
  const pushOpen = (payload: Buffer, pts: number) =>
    cutter.push({ pts, dts: pts, announcedBytes: 0 } as PesHeader, payload);
  return { cutter, units, damaged, push, pushOpen };
}

const DELIMITER = Buffer.from('0000000109f0', 'hex');
const slice = (fill: number, bytes = 10) => Buffer.concat([Buffer.from('00000165', 'hex'), Buffer.alloc(bytes, fill)]);
const picture = (fill: number, bytes?: number) => Buffer.concat([DELIMITER, slice(fill, bytes)]);
const lengths = (fill: number, bytes = 10) =>
  Buffer.concat([
    Buffer.from('0000000209f0', 'hex'),
    Buffer.from([0, 0, (bytes + 1) >> 8, (bytes + 1) & 0xff, 0x65]),
    Buffer.alloc(bytes, fill),
  ]);

test('a picture in a packet, with its times', (t) => {
  const { units, push } = setUp();
  push(picture(1), 3600 + 7200, 3600);
  push(picture(2), 5, 2 ** 33 - 10);
  push(picture(3), 100, 200);
  t.deepEqual(units, [
    { data: lengths(1), time: 3600, compositionTime: 7200 },
    { data: lengths(2), time: 2 ** 33 - 10, compositionTime: 15 },
    { data: lengths(3), time: 200, compositionTime: -100 },
  ]);
});

test('parameter sets in a packet of their own do not give the picture their time', (t) => {
  const { cutter, units, push } = setUp();
  const sets = Buffer.from('000000016742c01eda0280f6c044000003000400000300c83c58ba8000000168ce3c80', 'hex');
  push(sets, 0);
  push(slice(1), 3600);
  push(slice(2), 7200);
  cutter.flush();
  t.deepEqual(
    units.map(({ time }) => time),
    [3600, 7200],
  );
});

test('a picture that goes on in packets without number is dropped, and empty ones are nothing', (t) => {
  const { cutter, units, damaged, push } = setUp();
  push(picture(1), 0);
  push(Buffer.from('ab'));
  for (let i = 0; i < 100_000; i++) push(Buffer.alloc(0));
  t.deepEqual(damaged, []);
  for (let i = 0; i < 70_000; i++) push(Buffer.of(0xff));
  t.is(damaged[0], 'a video frame of too many bytes');
  push(picture(2), 3600);
  cutter.flush();
  t.is(units.length, 1);
});

test('several frames in a PES packet get times of their own', (t) => {
  const { units, push } = setUp();
  push(picture(1), 0);
  push(picture(2), 3003);
  push(Buffer.concat([picture(3), picture(4), picture(5)]), 6006);
  t.deepEqual(
    units.map(({ time }) => time),
    [0, 3003, 6006, 9009, 12_012],
  );
  t.deepEqual(units.at(-1)?.data, lengths(5));
});

/** H.264 with fields and frames, pic_order_cnt_lsb in 6 bits: as x264 writes it for interlaced and progressive video. */
const INTERLACED = Buffer.from('0000000167640015acd9429b6022000003000200000300643e28532c', 'hex');
const PPS = Buffer.from('0000000168ebe3cb22c0', 'hex');
const FIELDS = parseSps(INTERLACED.subarray(4));

interface Coded {
  readonly frame: number;
  readonly order: number;
  readonly firstMb?: number;
  readonly field?: 'top' | 'bottom';
  readonly idr?: boolean;
  readonly isReference?: boolean;
}

/** A slice of one picture, with `fill` behind its header. */
function coded({ frame, order, firstMb = 0, field, idr = false, isReference = true }: Coded, fill = 1): Buffer {
  const bits = new BitWriter()
    .ue(firstMb)
    .ue(7)
    .ue(0)
    .write(frame, FIELDS.frameNumBits)
    .flag(field !== undefined);
  if (field !== undefined) bits.flag(field === 'bottom');
  if (idr) bits.ue(0);
  bits.write(order, FIELDS.pocLsbBits).flag(true);
  const nal = Buffer.concat([bits.finish(), Buffer.alloc(20, 0xf0 + fill)]);
  return Buffer.concat([Buffer.from([0, 0, 1, (isReference ? 0x60 : 0) | (idr ? 5 : 1)]), nal]);
}

const joined = (...slices: Buffer[]) => joinNals(splitAnnexB(Buffer.concat(slices)));

test('two fields are one frame, with a delimiter between them or without, in one packet or two', (t) => {
  const top = coded({ frame: 0, order: 0, field: 'top', idr: true }, 1);
  const bottom = coded({ frame: 0, order: 1, field: 'bottom' }, 2);
  const third = coded({ frame: 1, order: 2, field: 'top' }, 3);
  const fourth = coded({ frame: 1, order: 3, field: 'bottom' }, 4);
  const frame = coded({ frame: 2, order: 4 }, 5);
  // pictures that others do not need have the same number
  const open = [
    coded({ frame: 3, order: 6, field: 'bottom', isReference: false }, 6),
    coded({ frame: 3, order: 7, field: 'top', isReference: false }, 7),
    coded({ frame: 3, order: 8, field: 'bottom', isReference: false }, 8),
    coded({ frame: 3, order: 9, field: 'top', isReference: false }, 9),
  ] as const;
  const sets = [INTERLACED, PPS] as const;
  const expected = [
    joined(...sets, top, bottom),
    joined(third, fourth),
    joined(frame),
    joined(open[0], open[1]),
    joined(open[2], open[3]),
  ];
  const whole = setUp();
  whole.push(Buffer.concat([...sets, top, bottom, third, fourth, frame, ...open]), 0);
  whole.push(frame, 5 * 3600);
  t.deepEqual(
    whole.units.slice(0, 5).map(({ data }) => data),
    expected,
  );
  t.deepEqual(
    whole.units.map(({ time }) => time / 3600),
    [0, 1, 2, 3, 4, 5],
  );
  for (const delimiter of [DELIMITER, Buffer.alloc(0)]) {
    const single = setUp();
    const fields = [Buffer.concat([...sets, top]), bottom, third, fourth, frame, ...open];
    const times = [0, 1, 2, 3, 4, 6, 7, 8, 9];
    for (const [i, field] of fields.entries())
      single.push(Buffer.concat([delimiter, field]), (times[i] as number) * 1800);
    single.cutter.flush();
    t.deepEqual(
      single.units.map(({ time }) => time / 3600),
      [0, 1, 2, 3, 4],
    );
    t.deepEqual(single.damaged, []);
    if (delimiter.length > 0) continue;
    t.deepEqual(
      single.units.map(({ data }) => data),
      expected,
    );
  }
});

for (const perPacket of [2, 5]) {
  test(`${perPacket} pictures in a packet without delimiters, of several slices each`, (t) => {
    const pictures = Array.from({ length: 20 }, (_, i) =>
      [0, 60, 120].map((firstMb) => coded({ frame: i, order: 2 * i, firstMb, idr: i === 0 }, i % 8)),
    );
    const { units, damaged, push, cutter } = setUp();
    for (let i = 0; i < pictures.length; i += perPacket) {
      const sets = i === 0 ? [INTERLACED, PPS] : [];
      push(Buffer.concat([...sets, ...pictures.slice(i, i + perPacket).flat()]), 900 + i * 3003);
    }
    cutter.flush();
    t.deepEqual(
      units.map(({ time }) => time),
      pictures.map((_, i) => 900 + i * 3003),
    );
    t.deepEqual(
      units.slice(1).map(({ data }) => data),
      pictures.slice(1).map((slices) => joined(...slices)),
    );
    t.deepEqual(damaged, []);
  });
}

test('slices and parameter sets in packets of their own are of one picture, with one time or none behind the first', (t) => {
  for (const repeats of [true, false]) {
    const { units, damaged, push, cutter } = setUp();
    for (let i = 0; i < 10; i++) {
      const slices = [0, 60, 120].map((firstMb) => coded({ frame: i, order: 2 * i, firstMb, idr: i === 0 }, i));
      const pieces = [...(i === 0 ? [INTERLACED, PPS] : []), ...slices];
      for (const [j, piece] of pieces.entries()) push(piece, j === 0 || repeats ? i * 3600 : undefined);
    }
    cutter.flush();
    t.deepEqual(
      units.map(({ time, data }) => [time, [...nalUnits(data)].length]),
      Array.from({ length: 10 }, (_, i) => [i * 3600, i === 0 ? 5 : 3]),
    );
    t.deepEqual(damaged, []);
  }
});

test('slices of H.265 in packets of their own, and pictures of several slices in one', (t) => {
  const segment = (isFirst: boolean, fill: number) =>
    Buffer.concat([Buffer.from([0, 0, 1, 0x02, 0x01, isFirst ? 0xc0 : 0x40]), Buffer.alloc(8, fill)]);
  const first = Buffer.from('000001260180' + 'aa'.repeat(8), 'hex');
  const single = setUp('H265');
  single.push(first, 0);
  single.push(Buffer.from('000001260140' + 'aa'.repeat(8), 'hex'), 0);
  for (let i = 1; i < 5; i++) for (const isFirst of [true, false]) single.push(segment(isFirst, i), i * 3600);
  single.cutter.flush();
  t.deepEqual(
    single.units.map(({ time, data }) => [time / 3600, [...nalUnits(data)].length]),
    Array.from({ length: 5 }, (_, i) => [i, 2]),
  );
  const whole = setUp('H265');
  for (let i = 0; i < 6; i += 2) {
    const pictures = [i, i + 1].flatMap((fill) => [segment(true, fill), segment(false, fill)]);
    whole.push(Buffer.concat(pictures), i * 3600);
  }
  whole.cutter.flush();
  t.deepEqual(
    whole.units.map(({ time, data }) => [time / 3600, [...nalUnits(data)].length]),
    Array.from({ length: 6 }, (_, i) => [i, 2]),
  );
});

test('a time in every second packet alone', (t) => {
  const { units, damaged, push, cutter } = setUp();
  for (let i = 0; i < 10; i++) {
    const sets = i === 0 ? [INTERLACED, PPS] : [];
    push(Buffer.concat([...sets, coded({ frame: i, order: 2 * i, idr: i === 0 })]), i % 2 === 0 ? i * 3600 : undefined);
  }
  cutter.flush();
  t.deepEqual(
    units.map(({ time }) => time / 3600),
    Array.from({ length: 10 }, (_, i) => i),
  );
  t.deepEqual(damaged, []);
});

test('a picture without times follows the one before', (t) => {
  const { units, damaged, push } = setUp();
  push(picture(1));
  push(picture(2), 1000);
  push(picture(3), 4000);
  push(picture(4));
  t.deepEqual(
    units.map(({ time }) => time),
    [1000, 4000, 7000],
  );
  t.deepEqual(damaged, ['a video frame without a timestamp']);
});

test('a picture that goes on in packets without times, when it is long; shorter ones are not waited for', (t) => {
  const { units, damaged, push } = setUp();
  push(picture(1, 65_400), 0);
  t.is(units.length, 0);
  push(Buffer.alloc(1000, 1));
  push(picture(2), 3000);
  t.deepEqual(
    units.map(({ data, time }) => [data.length, time]),
    [
      [lengths(1, 66_400).length, 0],
      [lengths(2).length, 3000],
    ],
  );
  t.deepEqual(damaged, []);
});

test('the first short one that goes on is damaged, and the next is waited for', (t) => {
  const { cutter, units, damaged, push } = setUp();
  push(picture(1), -3000);
  push(picture(1), 0);
  push(Buffer.alloc(20, 1));
  push(picture(2), 3000);
  push(Buffer.alloc(20, 2));
  push(picture(3), 6000);
  t.deepEqual(damaged, ['a video frame that continues in another PES packet']);
  t.deepEqual(units[2], { data: lengths(2, 30), time: 3000, compositionTime: 0 });
  t.is(units.length, 3);
  cutter.flush();
  t.is(units.length, 4);
});

test('an access unit of open length is completed at once, however long it is', (t) => {
  const { units, pushOpen } = setUp();
  pushOpen(picture(1, 65_400), 0);
  pushOpen(picture(2, 200_000), 3000);
  t.deepEqual(
    units.map(({ time }) => time),
    [0, 3000],
  );
});

test('a packet that is damaged delays pictures for a while, and not for ever', (t) => {
  const { units, damaged, push } = setUp();
  for (let i = 0; i < 10; i++) push(picture(1), i * 3000);
  push(Buffer.alloc(20, 1));
  t.deepEqual(damaged, ['a video frame that continues in another PES packet']);
  for (let i = 10; i < 400; i++) push(picture(1), i * 3000);
  t.is(units.length, 400);
});

test('a picture that was lost and goes on delays none of those behind it', (t) => {
  const { cutter, units, push } = setUp();
  push(picture(1, 65_400), 0);
  cutter.lost();
  push(Buffer.alloc(1000, 1));
  push(picture(2), 3000);
  t.is(units.length, 1);
});

test('an access unit with lost bytes is dropped, and held data is limited', (t) => {
  const { cutter, units, damaged, push } = setUp();
  push(picture(1, 65_400), 0);
  cutter.lost();
  push(Buffer.alloc(1000, 1));
  push(picture(2, 65_400), 3000);
  for (let i = 0; i < 150; i++) push(Buffer.alloc(60_000, 2));
  t.deepEqual(units, []);
  t.deepEqual(
    new Set(damaged),
    new Set(['a video frame that continues in another PES packet', 'a video frame of too many bytes']),
  );
});

test('an access unit has a limited number of NAL units', (t) => {
  const { cutter, units, damaged, push } = setUp();
  push(Buffer.alloc(4 * 1024, Buffer.from('00000165', 'hex')), 0);
  cutter.flush();
  t.is(units.length, 1);
  push(Buffer.alloc(4 * 1025, Buffer.from('00000165', 'hex')), 3600);
  t.is(units.length, 1);
  t.deepEqual(damaged, ['a video frame of too many NAL units']);
});
