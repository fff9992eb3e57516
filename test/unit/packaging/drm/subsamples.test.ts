import test from 'ava';
import { BitWriter } from '../../../../src/codecs/bits.ts';
import { joinNals, nalUnits } from '../../../../src/codecs/nal.ts';
import type { Subsample } from '../../../../src/containers/fmp4/protection.ts';
import { NAL_SYNTAX, type NalSyntax } from '../../../../src/packaging/drm/slice-headers.ts';
import { SliceFinder } from '../../../../src/packaging/drm/subsamples.ts';
import { videoTrack } from '../../../support/media/packets.ts';
import { box, samples, seeded, vector } from '../../codecs/vectors.ts';

const H264 = NAL_SYNTAX.H264 as NalSyntax;
const file = vector('h264-baseline.mp4');
const track = videoTrack({ config: box(file, 'avcC') });
const length = (list: readonly Subsample[]): number => list.reduce((sum, one) => sum + one.clear + one.encrypted, 0);
const slice = (bytes: number): Buffer => Buffer.concat([Buffer.of(0x65), Buffer.alloc(bytes - 1, 0xff)]);

test('slices are encrypted after their headers, in whole blocks with cenc', (t) => {
  for (const data of samples(file)) {
    const whole = new SliceFinder(H264, false).find(track, data);
    const aligned = new SliceFinder(H264, true).find(track, data);
    t.is(length(whole), data.length);
    t.is(length(aligned), data.length);
    t.true(aligned.every(({ encrypted }) => encrypted % 16 === 0));
    t.true(whole.some(({ encrypted }) => encrypted > 0));
  }
});

test('a slice whose header cannot be read is encrypted all the same', (t) => {
  const data = joinNals([slice(200)]);
  t.deepEqual(new SliceFinder(H264, false).find(videoTrack({ config: undefined }), data), [
    { clear: 68, encrypted: 136 },
  ]);
});

/** A PPS that differs from others by its id alone. */
const pps = (id: number): Buffer => {
  const bits = new BitWriter().write(0x68, 8).ue(id).ue(0).write(0, 2).ue(0).ue(0).ue(0).write(0, 3);
  return bits.se(0).se(0).se(0).write(0, 3).write(0x80, 8).finish();
};

test('parameter sets between slices: each is read once, and those before it stay known', (t) => {
  const [frame = Buffer.alloc(0)] = samples(file);
  const slices = [...nalUnits(frame)].filter((nal) => H264.kindOf(nal) === 'slice');
  const known = new SliceFinder(H264, false).find(track, joinNals(slices));
  let reads = 0;
  const counted: NalSyntax = {
    ...H264,
    headers: () => {
      const headers = H264.headers();
      return { bytes: (nal) => headers.bytes(nal), add: (set) => (reads++, headers.add(set)) };
    },
  };
  const finder = new SliceFinder(counted, false);
  finder.find(track, joinNals(slices));
  const configured = reads;
  for (let id = 1; id <= 200; id++) finder.find(track, joinNals([pps(id), ...slices]));
  t.is(reads - configured, 200);
  t.deepEqual(finder.find(track, joinNals(slices)), known);
});

test('a parameter set that cannot be read is that of no slice, until it comes again', (t) => {
  const [frame = Buffer.alloc(0)] = samples(file);
  const slices = [...nalUnits(frame)].filter((nal) => H264.kindOf(nal) === 'slice');
  const finder = new SliceFinder(H264, false);
  const known = finder.find(track, joinNals(slices));
  const set = H264.parameterSetsOf(track.config as Buffer).find((nal) => ((nal[0] as number) & 0x1f) === 8) as Buffer;
  finder.find(track, joinNals([set.subarray(0, 2)]));
  t.notDeepEqual(finder.find(track, joinNals(slices)), known);
  finder.find(track, joinNals([set]));
  t.deepEqual(finder.find(track, joinNals(slices)), known);
});

test('clear bytes that 16 bits do not count, and slices of less than a block', (t) => {
  const sei = Buffer.alloc(70_000, 6);
  const data = joinNals([sei, slice(12), slice(200)]);
  const found = new SliceFinder(H264, false).find(videoTrack({ config: undefined }), data);
  t.deepEqual(found, [
    { clear: 65_535, encrypted: 0 },
    { clear: 4 + 70_000 + 16 + 68 - 65_535, encrypted: 136 },
  ]);
});

test('more slices than a fragment can describe: the rest is one range, none is in clear', (t) => {
  const data = joinNals(Array.from({ length: 300 }, () => slice(100)));
  const found = new SliceFinder(H264, false).find(videoTrack({ config: undefined }), data);
  t.true(found.length <= 40);
  t.is(length(found), data.length);
  t.true((found.at(-1)?.encrypted ?? 0) > 20_000);
});

test('data that is no sequence of NAL units is encrypted', (t) => {
  const random = seeded(7);
  for (let round = 0; round < 200; round++) {
    const data = Buffer.from(Array.from({ length: Math.floor(random() * 400) }, () => Math.floor(random() * 256)));
    for (const aligned of [false, true]) {
      const found = new SliceFinder(H264, aligned).find(track, data);
      t.is(length(found), data.length);
    }
  }
  const [whole] = new SliceFinder(H264, false).find(track, Buffer.alloc(100, 0xff));
  t.deepEqual(whole, { clear: 4, encrypted: 96 });
});
