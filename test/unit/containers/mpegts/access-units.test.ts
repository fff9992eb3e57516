import test from 'ava';
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
    cutter.push({ pts, dts, told: payload.length + 8 } as PesHeader, payload);
  /** In a packet of open length. */
  const pushOpen = (payload: Buffer, pts: number) => cutter.push({ pts, dts: pts, told: 0 } as PesHeader, payload);
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

test('several pictures in a packet get times of their own', (t) => {
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

test('two fields, each behind its delimiter, are one picture', (t) => {
  const field = Buffer.concat([DELIMITER, slice(2)]);
  // as x264 writes them: with frame_mbs_only_flag 0, and 1
  const interlaced = Buffer.from('0000000167640015acd9429b6022000003000200000300643e28532c', 'hex');
  const progressive = Buffer.from('000000016764000aacb2a2f97011000003000100000300320f122996', 'hex');
  const { units, push } = setUp();
  push(Buffer.concat([DELIMITER, interlaced, slice(1), field]), 0);
  t.is(units.length, 1);
  push(Buffer.concat([DELIMITER, progressive, slice(1), field]), 3600);
  t.is(units.length, 3);
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
  push(picture(1), 0);
  push(Buffer.alloc(20, 1));
  push(picture(2), 3000);
  push(Buffer.alloc(20, 2));
  push(picture(3), 6000);
  t.deepEqual(damaged, ['a video frame that continues in another PES packet']);
  t.deepEqual(units[1], { data: lengths(2, 30), time: 3000, compositionTime: 0 });
  t.is(units.length, 2);
  cutter.flush();
  t.is(units.length, 3);
});

test('one of open length is given out at once, however long it is', (t) => {
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

test('what is lost is not put together, and what is held has a limit', (t) => {
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

test('as many NAL units as a picture may have', (t) => {
  const { units, damaged, push } = setUp();
  push(Buffer.alloc(4 * 1024, Buffer.from('00000165', 'hex')), 0);
  t.is(units.length, 1);
  push(Buffer.alloc(4 * 1025, Buffer.from('00000165', 'hex')), 3600);
  t.is(units.length, 1);
  t.deepEqual(damaged, ['a video frame of too many NAL units']);
});
