import test from 'ava';
import { brokenRules, type IngressRules, type IngressSample } from '../../../src/alerts/ingress-rules.ts';

const NONE: IngressRules = { streamStatus: false, longKeyFrameInterval: false, hasBFrames: false };
const VIDEO = { width: 1280, height: 720, framerate: 30, keyFrameInterval: 1, hasBframes: false };
const SAMPLE: IngressSample = { bitrate: 2_000_000, videos: [VIDEO], audios: [{ samplerate: 48_000 }], avOffset: -40 };

const codes = (rules: Partial<IngressRules>, sample: Partial<IngressSample> = {}): string[] =>
  brokenRules({ ...NONE, ...rules }, { ...SAMPLE, ...sample }).map(({ code }) => code);

test('each bound of an ingress rule is checked on both of its sides', (t) => {
  for (const [rule, bound, code] of [
    ['minBitrate', 2_000_000, 'INGRESS_BITRATE_LOW'],
    ['maxBitrate', 2_000_000, 'INGRESS_BITRATE_HIGH'],
    ['minFramerate', 30, 'INGRESS_FRAMERATE_LOW'],
    ['maxFramerate', 30, 'INGRESS_FRAMERATE_HIGH'],
    ['minWidth', 1280, 'INGRESS_WIDTH_SMALL'],
    ['maxWidth', 1280, 'INGRESS_WIDTH_LARGE'],
    ['minHeight', 720, 'INGRESS_HEIGHT_SMALL'],
    ['maxHeight', 720, 'INGRESS_HEIGHT_LARGE'],
    ['minSamplerate', 48_000, 'INGRESS_SAMPLERATE_LOW'],
    ['maxSamplerate', 48_000, 'INGRESS_SAMPLERATE_HIGH'],
  ] as const) {
    t.deepEqual(codes({ [rule]: bound }), [], `${rule}: the bound itself is allowed`);
    const beyond = rule.startsWith('min') ? bound + 1 : bound - 1;
    t.deepEqual(codes({ [rule]: beyond }), [code]);
  }
});

test('audio may be late or early by as much as the rule says, and by anything while that is not known', (t) => {
  const rule = { maxAVOffset: 100 };
  for (const avOffset of [undefined, 0, 100, -100]) t.deepEqual(codes(rule, { avOffset }), []);
  for (const avOffset of [101, -101]) t.deepEqual(codes(rule, { avOffset }), ['INGRESS_AV_OFFSET']);
  t.deepEqual(codes({}, { avOffset: 5000 }), []);
  const [late] = brokenRules({ ...NONE, ...rule }, { ...SAMPLE, avOffset: 301 });
  t.is(
    late?.description,
    "The ingress stream's audio is 301 ms late against its video, more than the configured 100 ms",
  );
});

test('a measured frame rate is not compared to the last digit', (t) => {
  t.deepEqual(codes({ minFramerate: 30 }, { videos: [{ ...VIDEO, framerate: 29.6 }] }), []);
  t.deepEqual(codes({ minFramerate: 30 }, { videos: [{ ...VIDEO, framerate: 29.4 }] }), ['INGRESS_FRAMERATE_LOW']);
});

test('flags hold what they name', (t) => {
  const slow = { ...VIDEO, keyFrameInterval: 4.1 };
  t.deepEqual(codes({}, { videos: [slow] }), []);
  t.deepEqual(codes({ longKeyFrameInterval: true }, { videos: [{ ...VIDEO, keyFrameInterval: 4 }] }), []);
  t.deepEqual(codes({ longKeyFrameInterval: true }, { videos: [VIDEO, slow] }), ['INGRESS_LONG_KEY_FRAME_INTERVAL']);
  t.deepEqual(codes({ hasBFrames: true }), []);
  t.deepEqual(codes({ hasBFrames: true }, { videos: [{ ...VIDEO, hasBframes: true }] }), ['INGRESS_HAS_BFRAME']);
});

test('rules about what a stream does not have are never broken', (t) => {
  const rules = {
    minFramerate: 60,
    minWidth: 4000,
    minSamplerate: 96_000,
    hasBFrames: true,
    longKeyFrameInterval: true,
  };
  t.deepEqual(codes(rules, { videos: [], audios: [] }), []);
});

test('several tracks cause one message, of the one that is furthest off', (t) => {
  const [message, ...others] = brokenRules(
    { ...NONE, minHeight: 1080 },
    { ...SAMPLE, videos: [VIDEO, { ...VIDEO, height: 360 }] },
  );
  t.deepEqual(others, []);
  t.deepEqual(message, {
    code: 'INGRESS_HEIGHT_SMALL',
    description: "The ingress stream's height (360) is smaller than the configured height (1080)",
  });
  t.deepEqual(brokenRules({ ...NONE, minBitrate: 3_000_000 }, { ...SAMPLE, bitrate: 316_228 }), [
    {
      code: 'INGRESS_BITRATE_LOW',
      description:
        "The ingress stream's current bitrate (316228 bps) is lower than the configured bitrate (3000000 bps)",
    },
  ]);
});
