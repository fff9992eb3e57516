import test from 'ava';
import * as av1 from '../../../src/codecs/av1.ts';
import { BitstreamError, BitWriter } from '../../../src/codecs/bits.ts';
import { box, samples, vector, withRenderSize } from './vectors.ts';

const types = (data: Buffer) => [...av1.obus(data)].map(({ type }) => type);
const DELIMITER = Buffer.of(0x12, 0);

test("the judge's records and temporal units: svt-av1, main profile", (t) => {
  const units = samples(vector('av1-svt.mp4'));
  const record = box(vector('av1-svt.mp4'), 'av1C');
  const config = av1.parseAv1Config(record);
  t.deepEqual(config.sequenceHeader, {
    profile: 0,
    level: 5,
    tier: 0,
    framerate: 0,
    stillPicture: false,
    reducedStillPicture: false,
    width: 1280,
    height: 720,
    bitDepth: 8,
    monochrome: false,
    subsamplingX: true,
    subsamplingY: true,
    chromaSamplePosition: 0,
    colour: { primaries: 2, transfer: 2, matrix: 2, fullRange: false },
    frames: {
      ...{ widthBits: 11, heightBits: 10, superres: false, frameIdBits: 0, orderHintBits: 7 },
      ...{ screenContent: 2, integerMotion: 2, presentationTimeBits: 0, removalTimeBits: 0, modelled: [] },
      ...{ deltaFrameIdBits: 0, largeSuperblocks: false },
      tools: {
        ...{ refFrameMvs: true, warpedMotion: true, cdef: true, restoration: false },
        ...{ separateUvDeltaQ: false, filmGrain: false },
      },
    },
  });
  t.is(av1.codecString(config), 'av01.0.05M.08');
  t.deepEqual(av1.buildAv1Config(units[0] as Buffer), record);
  t.deepEqual(
    units.map((unit) => av1.isKeyUnit(unit)),
    [true, false, true, false],
  );
});

test("the judge's records and temporal units: libaom, high profile, HDR", (t) => {
  const units = samples(vector('av1-aom-444.mp4'));
  const record = box(vector('av1-aom-444.mp4'), 'av1C');
  const config = av1.parseAv1Config(record);
  t.like(config, { profile: 1, bitDepth: 10, subsamplingX: false, subsamplingY: false, monochrome: false });
  t.like(config.sequenceHeader, {
    width: 66,
    height: 50,
    colour: { primaries: 9, transfer: 16, matrix: 9, fullRange: false },
  });
  t.is(av1.codecString(config), 'av01.1.00M.10.0.000.09.16.09.0');
  t.deepEqual(av1.buildAv1Config(units[0] as Buffer), record);
  t.deepEqual(
    units.map((unit) => av1.isKeyUnit(unit)),
    [true, false, true],
  );
});

test('a still picture with the reduced header', (t) => {
  const data = vector('av1-still.obu');
  t.true(av1.isKeyUnit(data));
  const config = av1.parseAv1Config(av1.buildAv1Config(data));
  t.like(config, { monochrome: true, bitDepth: 8 });
  t.like(config.sequenceHeader, { reducedStillPicture: true, width: 64, height: 64 });
});

test('temporal delimiters leave a file of units without a copy', (t) => {
  const [first] = samples(vector('av1-svt.mp4')) as [Buffer];
  const file = vector('av1-svt.obu');
  const raw = file.subarray(0, DELIMITER.length + first.length);
  t.deepEqual(raw.subarray(0, 2), DELIMITER);
  const canonical = av1.canonicalize(raw);
  t.deepEqual(canonical, first);
  t.is(canonical.buffer, raw.buffer);
  t.is(av1.canonicalize(first), first);
  const padded = av1.canonicalize(Buffer.concat([first, Buffer.of(0x7a, 2, 1, 1)]));
  t.deepEqual(padded, first);
});

test('an OBU without a size gets one, and what is in the middle leaves', (t) => {
  const sized = Buffer.concat([Buffer.of(0x32, 0xc8, 0x01), Buffer.alloc(200, 7)]);
  const bare = Buffer.concat([Buffer.of(0x30), Buffer.alloc(200, 7)]);
  const header = Buffer.of(0x0a, 1, 9);
  t.deepEqual(av1.canonicalize(Buffer.concat([DELIMITER, header, bare])), Buffer.concat([header, sized]));
  t.deepEqual(av1.canonicalize(Buffer.concat([header, DELIMITER, sized])), Buffer.concat([header, sized]));
  const extended = Buffer.of(0x34, 0x08, 1, 2, 3);
  t.deepEqual(av1.canonicalize(extended), Buffer.of(0x36, 0x08, 3, 1, 2, 3));
  t.deepEqual(types(extended), [av1.OBU.frame]);
  t.is(av1.canonicalize(DELIMITER).length, 0);
});

test('malformed OBUs are refused', (t) => {
  for (const bytes of ['80', '0a', '0aff', '0a02ff', '0affffffffffffffffff01', '0a8080808010', '0c', '0e00']) {
    t.throws(() => types(Buffer.from(bytes, 'hex')), { instanceOf: BitstreamError }, bytes);
  }
});

test('key frames are shown, coded and first', (t) => {
  const frame = (bits: number) => Buffer.of(0x32, 1, bits);
  t.true(av1.isKeyUnit(frame(0b0001_0000)));
  t.false(av1.isKeyUnit(frame(0b0000_0000)), 'a key frame that is not shown');
  t.false(av1.isKeyUnit(frame(0b1000_0000)), 'an existing frame that is shown again');
  t.false(av1.isKeyUnit(frame(0b0011_0000)), 'an inter frame');
  t.false(av1.isKeyUnit(frame(0b0101_0000)), 'an intra-only frame');
  t.false(av1.isKeyUnit(Buffer.concat([frame(0b0011_0000), frame(0b0001_0000)])));
  t.false(av1.isKeyUnit(DELIMITER));
});

/** A sequence header with timing and decoder model information and two operating points. */
function timedHeader(): Buffer {
  const writer = new BitWriter().write(0, 3).flag(false).flag(false);
  writer.flag(true).write(1001, 32).write(60_000, 32).flag(true).ue(1);
  writer.flag(true).write(9, 5).write(1, 32).write(4, 5).write(4, 5);
  writer.flag(true).write(1, 5);
  writer.write(0x101, 12).write(13, 5).flag(true);
  writer.flag(true).write(1, 10).write(1, 10).flag(false).flag(true).write(3, 4);
  writer.write(0, 12).write(4, 5).flag(false).flag(false);
  writer.write(10, 4).write(10, 4).write(1919, 11).write(1079, 11);
  writer.flag(true).write(0, 7).write(0, 3);
  writer.write(0, 4).flag(true).write(0, 2).flag(false).flag(true).flag(false).flag(true).write(6, 3).write(0, 3);
  writer.flag(true).flag(false).flag(true).write(1, 8).write(13, 8).write(6, 8).flag(true).write(2, 2).flag(false);
  return writer.finish();
}

test('frame rate, tier and colour of a header with everything in it', (t) => {
  const payload = timedHeader();
  const header = av1.parseSequenceHeader(payload);
  t.deepEqual(header, {
    profile: 0,
    level: 13,
    tier: 1,
    framerate: 60_000 / 2002,
    stillPicture: false,
    reducedStillPicture: false,
    width: 1920,
    height: 1080,
    bitDepth: 10,
    monochrome: false,
    subsamplingX: true,
    subsamplingY: true,
    chromaSamplePosition: 2,
    colour: { primaries: 1, transfer: 13, matrix: 6, fullRange: true },
    frames: {
      ...{ widthBits: 11, heightBits: 11, superres: false, frameIdBits: 3, orderHintBits: 7 },
      ...{ screenContent: 1, integerMotion: 1, presentationTimeBits: 0, removalTimeBits: 5, modelled: [0x101] },
      ...{ deltaFrameIdBits: 2, largeSuperblocks: false },
      tools: {
        ...{ refFrameMvs: false, warpedMotion: false, cdef: false, restoration: false },
        ...{ separateUvDeltaQ: false, filmGrain: false },
      },
    },
  });
  const obu = Buffer.concat([Buffer.of(0x0a, payload.length), payload]);
  const config = av1.parseAv1Config(av1.buildAv1Config(obu));
  t.like(config, { profile: 0, level: 13, tier: 1, bitDepth: 10, chromaSamplePosition: 2 });
  t.is(av1.codecString(config), 'av01.0.13H.10.0.112.01.13.06.1');
});

/** Where dav1d reads render_and_frame_size_different in the first frame of a vector, in bits. */
const SHAPE_FLAGS = [
  ['av1-aom-444.mp4', 15],
  ['av1-svt.mp4', 14],
] as const;

/** A key unit whose frame tells the size that it is to be shown in. */
function shownAs(unit: Buffer, flag: number, width: number, height: number): Buffer {
  const parts = [...av1.obus(unit)].map(({ type, data, payload }) => {
    if (type !== av1.OBU.frame) return data;
    const shown = withRenderSize(payload, flag, width, height);
    const writer = new BitWriter().write(data[0] as number, 8);
    writer.write(0x80 | (shown.length & 0x7f), 8).write(shown.length >> 7, 8);
    return Buffer.concat([writer.finish(), shown]);
  });
  return Buffer.concat(parts);
}

test('the shape of samples by the render size of a key frame', (t) => {
  for (const [name, flag] of SHAPE_FLAGS) {
    const [unit] = samples(vector(name)) as [Buffer];
    const sequence = av1.parseAv1Config(av1.buildAv1Config(unit)).sequenceHeader as av1.Av1SequenceHeader;
    t.is(av1.keyUnitShape(unit, sequence), undefined, name);
    const { width, height } = sequence;
    const wide = shownAs(unit, flag, (width * 3) / 2, height);
    t.true(av1.isKeyUnit(wide));
    t.deepEqual(av1.keyUnitShape(wide, sequence), { num: 3, den: 2 }, name);
    t.is(av1.keyUnitShape(shownAs(unit, flag, width * 2, height * 2), sequence), undefined, 'scaled as a whole');
    t.is(av1.keyUnitShape(shownAs(unit, flag, width * 5, height), sequence), undefined, 'no camera has such samples');
  }
});

test('the shape of samples where a frame has everything in front of it', (t) => {
  const payload = timedHeader();
  const sequence = av1.parseSequenceHeader(payload);
  const frame = new BitWriter();
  // shown key frame, disable_cdf_update, frame id, own size, order hint, a removal time of the one operating point
  frame.flag(false).write(0, 2).flag(true).flag(false).write(5, 3).flag(true).write(9, 7).flag(true).write(3, 5);
  frame.write(1919, 11).write(1079, 11).flag(true).write(2559, 16).write(1079, 16);
  const body = frame.finish();
  const unit = Buffer.concat([Buffer.of(0x0a, payload.length), payload, Buffer.of(0x32, body.length), body]);
  t.deepEqual(av1.keyUnitShape(unit, sequence), { num: 4, den: 3 });
  for (let size = 0; size < body.length; size++) {
    const cut = Buffer.concat([Buffer.of(0x32, size), body.subarray(0, size)]);
    t.is(av1.keyUnitShape(cut, sequence), undefined);
  }
});

test('a record without OBUs, and wrong records', (t) => {
  const record = box(vector('av1-svt.mp4'), 'av1C');
  const config = av1.parseAv1Config(record.subarray(0, 4));
  t.is(config.sequenceHeader, undefined);
  t.is(av1.codecString(config), 'av01.0.05M.08');
  for (let size = 0; size < 4; size++) {
    t.throws(() => av1.parseAv1Config(record.subarray(0, size)), { instanceOf: BitstreamError });
  }
  t.throws(() => av1.parseAv1Config(Buffer.of(1, 0, 0, 0)), { instanceOf: BitstreamError });
  t.throws(() => av1.buildAv1Config(DELIMITER), { instanceOf: BitstreamError });
});
