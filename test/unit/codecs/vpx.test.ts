import test from 'ava';
import { BitstreamError, BitWriter } from '../../../src/codecs/bits.ts';
import * as vp8 from '../../../src/codecs/vp8.ts';
import * as vp9 from '../../../src/codecs/vp9.ts';
import { box, ivfFrames, vector, withRenderSize } from './vectors.ts';

test('VP8: key frames and their size', (t) => {
  const frames = ivfFrames(vector('vp8.ivf'));
  t.deepEqual(frames.map(vp8.isKey), [true, false, true]);
  t.deepEqual(vp8.parseKeyFrame(frames[0] as Buffer), { profile: 0, width: 176, height: 144 });
  const scaled = Buffer.from(frames[0] as Buffer);
  scaled.writeUInt16LE(0x4000 | 640, 6);
  t.is(vp8.parseKeyFrame(scaled).width, 640, 'the scaling bits are no part of the size');
});

test('VP8: what is no key frame is refused', (t) => {
  const [key, inter] = ivfFrames(vector('vp8.ivf')) as [Buffer, Buffer];
  t.false(vp8.isKey(Buffer.alloc(0)));
  t.throws(() => vp8.parseKeyFrame(inter), { instanceOf: BitstreamError });
  t.throws(() => vp8.parseKeyFrame(key.subarray(0, 9)), { instanceOf: BitstreamError });
  t.throws(() => vp8.parseKeyFrame(Buffer.alloc(10)), { instanceOf: BitstreamError });
});

test('VP9: key frames and their format', (t) => {
  const frames = ivfFrames(vector('vp9-profile0.ivf'));
  t.deepEqual(frames.map(vp9.isKey), [true, false, true]);
  t.deepEqual(vp9.parseKeyFrame(frames[0] as Buffer), {
    profile: 0,
    bitDepth: 8,
    colourSpace: 0,
    fullRange: false,
    subsamplingX: true,
    subsamplingY: true,
    width: 320,
    height: 180,
  });
  const deep = ivfFrames(vector('vp9-profile3.ivf'));
  t.deepEqual(deep.map(vp9.isKey), [true, false]);
  t.like(vp9.parseKeyFrame(deep[0] as Buffer), {
    profile: 3,
    bitDepth: 10,
    subsamplingX: true,
    subsamplingY: false,
    width: 66,
    height: 50,
  });
});

test('VP9: the shape of samples by the render size', (t) => {
  // of a key frame of profile 0: marker, profile, type, flags, sync code, colour, and both sides in 16 bits
  const flag = 2 + 2 + 4 + 24 + 4 + 32;
  const [frame] = ivfFrames(vector('vp9-profile0.ivf')) as [Buffer];
  const shape = (width: number, height: number) => vp9.parseKeyFrame(withRenderSize(frame, flag, width, height));
  t.like(shape(240, 180), { width: 320, height: 180, sar: { num: 3, den: 4 } });
  t.like(shape(427, 180), { sar: { num: 427, den: 320 } });
  for (const [width, height] of [
    [320, 180],
    [640, 360],
    [214, 120],
    [1, 65_536],
  ] as const)
    t.is(shape(width, height).sar, undefined, `${width}x${height}`);
  t.is(vp9.parseKeyFrame(frame.subarray(0, 10)).sar, undefined, 'what is not there is not told');
});

test("VP9: the judge's records from a key frame", (t) => {
  for (const [name, codec] of [
    ['vp9-profile0', 'vp09.00.11.08'],
    ['vp9-profile3', 'vp09.03.10.10'],
  ] as const) {
    const payload = box(vector(`${name}.mp4`), 'vpcC');
    const config = vp9.parseVpcConfig(payload);
    t.deepEqual(vp9.parseVpcConfig(payload.subarray(4)), config, 'with and without version and flags');
    const [frame] = ivfFrames(vector(`${name}.ivf`)) as [Buffer];
    t.deepEqual(vp9.vpcConfigOf(vp9.parseKeyFrame(frame), 25), config);
    t.deepEqual(vp9.buildVpcConfig(config), payload.subarray(4));
    t.is(vp9.codecString(config), codec);
  }
});

test('VP9: levels by size and rate', (t) => {
  const level = (width: number, height: number, rate: number) =>
    vp9.vpcConfigOf(
      {
        profile: 0,
        bitDepth: 8,
        colourSpace: 2,
        fullRange: false,
        subsamplingX: true,
        subsamplingY: true,
        width,
        height,
      },
      rate,
    ).level;
  t.is(level(1280, 720, 30), 31);
  t.is(level(1920, 1080, 30), 40);
  t.is(level(1920, 1080, 60), 41);
  t.is(level(3840, 2160, 0), 50);
  t.is(level(16384, 16384, 120), 0);
});

test('VP9: RGB only in profiles that have it', (t) => {
  const key = (profile: number) => {
    const writer = new BitWriter()
      .write(2, 2)
      .write(profile & 1, 1)
      .write(profile >> 1, 1);
    if (profile === 3) writer.flag(false);
    writer.flag(false).flag(false).flag(true).flag(false).write(0x498342, 24);
    if (profile >= 2) writer.flag(true);
    writer.write(7, 3);
    if ((profile & 1) === 1) writer.flag(false);
    return writer.write(99, 16).write(49, 16).finish();
  };
  t.like(vp9.parseKeyFrame(key(1)), { profile: 1, subsamplingX: false, fullRange: true, width: 100, height: 50 });
  t.like(vp9.parseKeyFrame(key(3)), { profile: 3, bitDepth: 12, width: 100, height: 50 });
  t.throws(() => vp9.parseKeyFrame(key(0)), { instanceOf: BitstreamError });
});

test('VP9: what is no key frame and no record is refused', (t) => {
  const [key, inter] = ivfFrames(vector('vp9-profile0.ivf')) as [Buffer, Buffer];
  t.false(vp9.isKey(Buffer.alloc(0)));
  t.false(vp9.isKey(Buffer.of(0x02)));
  t.false(vp9.isKey(Buffer.of(0x88)), 'an existing frame that is shown again');
  t.throws(() => vp9.parseKeyFrame(inter), { instanceOf: BitstreamError });
  t.throws(() => vp9.parseKeyFrame(key.subarray(0, 6)), { instanceOf: BitstreamError });
  t.throws(() => vp9.parseKeyFrame(Buffer.alloc(20, 0x82)), { instanceOf: BitstreamError });
  t.throws(() => vp9.parseVpcConfig(Buffer.alloc(5, 0x80)), { instanceOf: BitstreamError });
  t.throws(() => vp9.parseVpcConfig(Buffer.alloc(12)), { instanceOf: BitstreamError });
});
