import test from 'ava';
import { buildAvcConfig } from '../../../src/codecs/h264-config.ts';
import { BitstreamError, BitWriter } from '../../../src/codecs/bits.ts';
import * as h264 from '../../../src/codecs/h264.ts';
import { withoutRecoveryPoints } from '../../../src/codecs/recovery-point.ts';
import { joinNals, nalUnits, splitAnnexB } from '../../../src/codecs/nal.ts';
import { spsMeaning } from '../../../src/codecs/h264-sps.ts';
import { ParameterSets } from '../../../src/codecs/parameter-sets.ts';
import { h264Pps, h264Sps } from '../../support/media/nal-build.ts';
import { box, samples, vector } from './vectors.ts';

const ORDINARY = {
  id: 0,
  constraints: 0,
  chromaFormat: 1,
  bitDepthLuma: 8,
  bitDepthChroma: 8,
  interlaced: false,
  separatePlanes: false,
  frameNumBits: 4,
  pocLsbBits: 6,
  pocDeltas: false,
  sar: { num: 1, den: 1 },
  colour: undefined,
};
const BT709 = { primaries: 1, transfer: 1, matrix: 1, fullRange: false };

const streams: Record<string, { sps: h264.H264Sps; codec: string }> = {
  'high-bframes': {
    sps: {
      ...ORDINARY,
      profile: 100,
      level: 40,
      width: 1920,
      height: 1080,
      framerate: 30000 / 1001,
      colour: BT709,
      maxReorderFrames: 2,
      mayHaveBFrames: true,
    },
    codec: 'avc1.640028',
  },
  baseline: {
    sps: {
      ...ORDINARY,
      profile: 66,
      constraints: 0xc0,
      pocLsbBits: 0,
      level: 10,
      width: 66,
      height: 50,
      framerate: 25,
      sar: { num: 12, den: 11 },
      maxReorderFrames: 0,
      mayHaveBFrames: false,
    },
    codec: 'avc1.42c00a',
  },
  'high10-422': {
    sps: {
      ...ORDINARY,
      profile: 122,
      level: 10,
      width: 64,
      height: 48,
      framerate: 50,
      sar: { num: 7, den: 5 },
      chromaFormat: 2,
      bitDepthLuma: 10,
      bitDepthChroma: 10,
      maxReorderFrames: 2,
      mayHaveBFrames: true,
    },
    codec: 'avc1.7a000a',
  },
  high444: {
    sps: {
      ...ORDINARY,
      profile: 244,
      level: 10,
      width: 50,
      height: 34,
      framerate: 24,
      chromaFormat: 3,
      maxReorderFrames: 2,
      mayHaveBFrames: true,
    },
    codec: 'avc1.f4000a',
  },
  'interlaced-hrd': {
    sps: {
      ...ORDINARY,
      profile: 100,
      level: 30,
      width: 720,
      height: 576,
      framerate: 25,
      interlaced: true,
      pocLsbBits: 4,
      maxReorderFrames: 0,
      mayHaveBFrames: false,
    },
    codec: 'avc1.64001e',
  },
};

for (const [name, { sps, codec }] of Object.entries(streams)) {
  test(`H.264 SPS and configuration record: ${name}`, (t) => {
    const record = box(vector(`h264-${name}.mp4`), 'avcC');
    const config = h264.parseAvcConfig(record);
    t.deepEqual(h264.parseSps(config.sps[0] as Buffer), sps);
    t.is(h264.codecString(config), codec);
    t.is(config.lengthSize, 4);
    t.deepEqual(buildAvcConfig(config), record);
    const nals = splitAnnexB(vector(`h264-${name}.h264`));
    t.deepEqual(config.sps, [nals.find((nal) => h264.nalType(nal) === h264.NAL.sps)] as Buffer[]);
    t.deepEqual(config.pps, [nals.find((nal) => h264.nalType(nal) === h264.NAL.pps)] as Buffer[]);
  });
}

test('key frames: IDR pictures', (t) => {
  const keys = (name: string) => samples(vector(`h264-${name}.mp4`)).map((unit) => h264.startOf(unit) === 'idr');
  t.deepEqual(keys('baseline'), [true, false, true]);
  t.deepEqual(keys('high-bframes'), [true, ...Array.from({ length: 7 }, () => false)]);
});

test('key frames: intra pictures behind a recovery point', (t) => {
  const units = samples(vector('h264-open-gop.mp4'));
  const keys = units.flatMap((unit, index) => (h264.startOf(unit) !== undefined ? [index] : []));
  t.deepEqual(keys, [0, 5, 13]);
  t.false([...nalUnits(units[5] as Buffer)].some(h264.isKeyNal), 'the vector has no second IDR picture');
});

test('H.264 decoding starts at recovery points, gradual ones too, and at none on a picture that is not intra', (t) => {
  const slice = (type: number) =>
    Buffer.concat([Buffer.of(0x41), new BitWriter().ue(0).ue(type).ue(0).flag(true).finish()]);
  const sei = (frames: number) => {
    const message = new BitWriter().ue(frames).write(4, 4).finish();
    return Buffer.concat([Buffer.of(6, 5, 1, 0xaa, 6, message.length), message, Buffer.of(0x80)]);
  };
  t.is(h264.startOf(joinNals([sei(0), slice(7)])), 'open');
  t.is(h264.startOf(joinNals([sei(0), slice(2)])), 'open');
  t.is(h264.startOf(joinNals([sei(30), slice(7)])), 'gradual');
  t.is(h264.startOf(joinNals([sei(30), slice(5)])), 'gradual');
  t.is(h264.startOf(joinNals([sei(0), slice(5)])), undefined);
  t.is(h264.startOf(joinNals([slice(7)])), undefined);
  t.is(h264.startOf(joinNals([sei(0)])), undefined);
});

test('an SEI message that is cut off takes no picture along', (t) => {
  const [intra, idr] = [Buffer.of(0x41, 0x88, 0x80), Buffer.of(0x65, 0x88, 0x80)];
  for (const bytes of [[5, 200, 1], [0xff, 0xff, 0xff], [6, 0, 0x80], [6, 4, 0], [5]]) {
    const sei = Buffer.of(6, ...bytes);
    t.is(h264.startOf(joinNals([sei, intra])), undefined, String(bytes));
    t.is(h264.startOf(joinNals([sei, idr])), 'idr', String(bytes));
  }
});

test('in-band parameter sets and delimiters leave without a copy', (t) => {
  const [first, second] = samples(vector('h264-high-bframes.mp4')) as [Buffer, Buffer];
  const { data, parameterSets } = h264.canonicalize(first, 4);
  t.deepEqual([...nalUnits(data)].map(h264.nalType), [h264.NAL.sei, h264.NAL.idr]);
  t.is(data.buffer, first.buffer);
  t.deepEqual(parameterSets.map(h264.nalType), [h264.NAL.sps, h264.NAL.pps]);
  t.deepEqual([...nalUnits(h264.canonicalize(second, 4).data)].map(h264.nalType), [h264.NAL.slice]);
});

test('filler data at the end leaves', (t) => {
  const unit = joinNals([Buffer.of(0x65, 0x88), Buffer.of(h264.NAL.filler, 0xff, 0xff, 0x80)]);
  t.is(h264.canonicalize(unit, 4).data.toString('hex'), '000000026588');
});

test('the sets of a picture: its SPS, and all PPS of that', (t) => {
  const first = h264.parseAvcConfig(box(vector('h264-high-bframes.mp4'), 'avcC'));
  const second = h264.parseAvcConfig(box(vector('h264-baseline.mp4'), 'avcC'));
  const known = new ParameterSets(h264.placeOfSet);
  known.add([...first.sps, ...first.pps]);
  t.deepEqual(h264.activeSets(known, 0)?.record, box(vector('h264-high-bframes.mp4'), 'avcC'));
  t.is(h264.activeSets(known, 1), undefined);
  known.add([...second.sps, ...second.pps]);
  t.deepEqual(h264.activeSets(known, 0)?.record, box(vector('h264-baseline.mp4'), 'avcC'));
  const [mine, other] = [h264Pps(5), h264Pps(6, 1)];
  known.add([mine, other]);
  t.deepEqual(h264.activeSets(known, 5)?.nals, [...second.sps, ...second.pps, mine]);
  t.is(h264.activeSets(known, 6), undefined);
});

test('the meaning of an H.264 SPS covers all but its id', (t) => {
  const [sps] = h264.parseAvcConfig(box(vector('h264-interlaced-hrd.mp4'), 'avcC')).sps as [Buffer];
  const meanings = Array.from({ length: 32 }, (_, id) => spsMeaning(h264Sps({ id })));
  t.is(new Set(meanings).size, 1);
  t.not(spsMeaning(h264Sps({ across: 21 })), meanings[0]);
  t.not(spsMeaning(h264Sps({ profile: 66 })), meanings[0]);
  t.is(spsMeaning(Buffer.concat([sps, Buffer.alloc(2)])), spsMeaning(sps));
});

test('a record without the fields behind the PPS, and one of short lengths', (t) => {
  const record = box(vector('h264-high-bframes.mp4'), 'avcC');
  const short = Buffer.from(record.subarray(0, -4));
  short[4] = 0xfd;
  const config = h264.parseAvcConfig(short);
  t.is(config.lengthSize, 2);
  t.deepEqual(config.spsExtensions, []);
  t.deepEqual(buildAvcConfig(config), record);
});

test('SPS extensions survive a round', (t) => {
  const { sps, pps } = h264.parseAvcConfig(box(vector('h264-high-bframes.mp4'), 'avcC'));
  const spsExtensions = [Buffer.of(0x6d, 0x80)];
  t.deepEqual(h264.parseAvcConfig(buildAvcConfig({ sps, pps, spsExtensions })).spsExtensions, spsExtensions);
});

test('wrong H.264 configuration records are refused', (t) => {
  const record = box(vector('h264-high-bframes.mp4'), 'avcC');
  for (let size = 0; size < record.length - 4; size++) {
    t.throws(() => h264.parseAvcConfig(record.subarray(0, size)), { instanceOf: BitstreamError }, `${size} bytes`);
  }
  const version2 = Buffer.concat([Buffer.of(2), record.subarray(1)]);
  t.throws(() => h264.parseAvcConfig(version2), { instanceOf: BitstreamError });
  const { sps, pps } = h264.parseAvcConfig(record);
  t.throws(() => buildAvcConfig({ sps: [], pps }), { instanceOf: BitstreamError });
  t.throws(() => buildAvcConfig({ sps, pps: [] }), { instanceOf: BitstreamError });
  t.throws(() => buildAvcConfig({ sps: pps, pps }), { instanceOf: BitstreamError });
});

/** An SPS of the main profile, 64x64, up to the cropping flag. */
function mainSps(pocType: (writer: BitWriter) => BitWriter, crop: readonly number[]): Buffer {
  const writer = pocType(new BitWriter().write(77, 8).write(0, 8).write(30, 8).ue(3).ue(0));
  writer
    .ue(1)
    .flag(false)
    .ue(3)
    .ue(3)
    .flag(true)
    .flag(true)
    .flag(crop.length > 0);
  for (const value of crop) writer.ue(value);
  return Buffer.concat([Buffer.of(0x67), writer.flag(false).flag(true).finish()]);
}

test('picture order counts by a cycle of offsets, and none by type 2', (t) => {
  const cycle = mainSps((writer) => writer.ue(1).flag(false).se(-3).se(4).ue(2).se(1).se(-1), []);
  t.like(h264.parseSps(cycle), {
    id: 3,
    width: 64,
    height: 64,
    framerate: 0,
    maxReorderFrames: undefined,
    mayHaveBFrames: true,
  });
  t.like(h264.parseSps(mainSps((writer) => writer.ue(2), [])), { maxReorderFrames: 0, mayHaveBFrames: false });
});

test('cropping counts in chroma samples and leaves a picture', (t) => {
  const type2 = (writer: BitWriter) => writer.ue(2);
  t.like(h264.parseSps(mainSps(type2, [1, 2, 3, 4])), { width: 58, height: 50 });
  t.throws(() => h264.parseSps(mainSps(type2, [16, 16, 0, 0])), { instanceOf: BitstreamError });
});

test('a VUI of H.264 that is cut off says nothing', (t) => {
  const [sps] = h264.parseAvcConfig(box(vector('h264-high-bframes.mp4'), 'avcC')).sps as [Buffer];
  const cut = h264.parseSps(sps.subarray(0, -4));
  t.like(cut, { width: 1920, height: 1080, framerate: 0, colour: undefined, maxReorderFrames: undefined });
  t.throws(() => h264.parseSps(sps.subarray(0, 8)), { instanceOf: BitstreamError });
});

test('recovery points leave, and other messages of their NAL units stay', (t) => {
  const slice = Buffer.of(0x41, 0x88, 0x80);
  const recovery = Buffer.of(6, 1, 0x84);
  // a user's message with what looks like a start code, behind emulation prevention
  const other = Buffer.of(5, 4, 0, 0, 3, 1, 7);
  const sei = (...messages: Buffer[]) => Buffer.concat([Buffer.of(6), ...messages, Buffer.of(0x80)]);
  t.deepEqual(withoutRecoveryPoints(joinNals([sei(recovery), slice])), joinNals([slice]));
  for (const messages of [
    [recovery, other],
    [other, recovery],
    [recovery, other, recovery],
  ])
    t.deepEqual(withoutRecoveryPoints(joinNals([sei(...messages), slice])), joinNals([sei(other), slice]));
  t.deepEqual(withoutRecoveryPoints(joinNals([sei(other), slice])), joinNals([sei(other), slice]));
  for (const bytes of [[6], [6, 200, 1], [0xff, 0xff]]) {
    const cut = joinNals([Buffer.of(6, ...bytes), slice]);
    t.is(h264.startOf(withoutRecoveryPoints(cut)), undefined);
  }
  const units = samples(vector('h264-open-gop.mp4'));
  t.is(h264.startOf(withoutRecoveryPoints(units[5] as Buffer)), undefined);
});
