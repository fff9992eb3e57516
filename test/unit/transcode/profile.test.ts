import test from 'ava';
import { outputName } from '../../../src/config/output-name.ts';
import type { AudioTrack, Track, VideoTrack } from '../../../src/core/track.ts';
import type { AudioEncoding, ImageEncoding, VideoEncoding } from '../../../src/transcode/encoding.ts';
import { planTracks, type PlanContext } from '../../../src/transcode/profile.ts';
import { AUDIO, VIDEO } from '../core/support.ts';
import { profile } from './support.ts';

const SOUND = { name: 'sound', codec: 'aac', bitrate: 128_000, samplerate: 48_000, channel: 2 };
const bypasses = (input: AudioTrack, bypassIfMatch: object, encode: object = SOUND): boolean => {
  const [planned] = planTracks(profile({ encodes: { audios: [{ ...encode, bypassIfMatch }] } }), [input]);
  return planned?.encoding === undefined && planned?.problem === undefined;
};

test('the macro stands for the name of the input stream', (t) => {
  t.is(outputName(profile({ encodes: { videos: [{ name: 'v', bypass: true }] } }), 'live'), 'live_o');
});

test('a stream name is taken as it is, patterns of replacement included', (t) => {
  const name = "$& $$ $` $' ${OriginStreamName}";
  t.is(outputName(profile({ encodes: { videos: [{ name: 'v', bypass: true }] } }), name), `${name}_o`);
});

test('a bypassed encode takes every track of its kind, under keys that differ', (t) => {
  const second: AudioTrack = { ...AUDIO, id: 2 };
  const both = profile({
    encodes: { videos: [{ name: 'picture', bypass: true }], audios: [{ name: 'sound', bypass: true }] },
  });
  const tracks = planTracks(both, [VIDEO, AUDIO, second]);
  t.deepEqual(
    tracks.map(({ from, variantName }) => [from.id, variantName]),
    [
      [0, 'picture'],
      [1, 'sound'],
      [2, 'sound'],
    ],
  );
  t.is(new Set(tracks.map(({ key }) => key)).size, 3);
  t.true(tracks.every(({ encoding }) => encoding === undefined));
});

test('an encode without an input of its kind makes nothing', (t) => {
  t.deepEqual(planTracks(profile({ encodes: { audios: [SOUND] } }), [VIDEO]), []);
});

test('BypassIfMatch: every listed condition must hold', (t) => {
  t.true(bypasses(AUDIO, { codec: 'eq' }));
  t.true(bypasses(AUDIO, { codec: 'eq' }, { ...SOUND, codec: 'AAC' }), 'codec names know no case');
  t.false(bypasses({ ...AUDIO, codec: 'OPUS' }, { codec: 'eq' }));
  t.true(bypasses(AUDIO, { codec: 'eq', samplerate: 'eq' }));
  t.false(bypasses({ ...AUDIO, samplerate: 44_100 }, { codec: 'eq', samplerate: 'eq' }));
  t.true(bypasses({ ...AUDIO, channels: 1 }, { channel: 'lte' }));
  t.false(bypasses({ ...AUDIO, channels: 6 }, { channel: 'lte' }));
  t.true(bypasses({ ...AUDIO, channels: 6 }, { channel: 'gte' }));
  t.false(bypasses({ ...AUDIO, channels: 1 }, { channel: 'gte' }));
});

test('BypassIfMatch of a picture compares size, frame rate and aspect', (t) => {
  const encode = { name: 'v', codec: 'h264', bitrate: 1_000_000, width: 640, height: 360, framerate: 30 };
  const plan = (bypassIfMatch: object, input: object) =>
    planTracks(profile({ encodes: { videos: [{ ...encode, bypassIfMatch }] } }), [{ ...VIDEO, ...input }])[0]
      ?.encoding === undefined;
  t.is(plan({ width: 'lte', height: 'lte' }, { width: 640, height: 360 }), true);
  t.is(plan({ width: 'lte', height: 'lte' }, { width: 1280, height: 360 }), false);
  t.is(plan({ framerate: 'lte' }, { framerate: 25 }), true);
  t.is(plan({ framerate: 'lte' }, { framerate: 60 }), false);
  t.is(plan({ sar: 'eq' }, { width: 1920, height: 1080 }), true);
  t.is(plan({ sar: 'eq' }, { width: 640, height: 480 }), false);
});

const video = (encode: object, input: object = {}, context?: PlanContext, more: object[] = []) => {
  const videos = [{ name: 'v', codec: 'h264', bitrate: 1_000_000, ...encode }, ...more];
  const source: VideoTrack = { ...VIDEO, framerate: 30, ...input };
  return planTracks(profile({ encodes: { videos } }), [source], context)[0];
};
const encodingOf = (...given: Parameters<typeof video>) => video(...given)?.encoding as VideoEncoding | undefined;
const sizeOf = (...given: Parameters<typeof video>) => {
  const { width, height } = encodingOf(...given) ?? {};
  return [width, height];
};

test("a size is the source's, or keeps its aspect, and is a multiple of 4", (t) => {
  t.deepEqual(sizeOf({}), [1280, 720]);
  t.deepEqual(sizeOf({ height: 360 }), [640, 360]);
  t.deepEqual(sizeOf({ width: 640 }), [640, 360]);
  t.deepEqual(sizeOf({ width: 854, height: 480 }), [856, 480]);
  t.deepEqual(sizeOf({ height: 240 }, { width: 1280, height: 544 }), [564, 240]);
  t.deepEqual(sizeOf({}, { width: 1918, height: 1078 }), [1920, 1080]);
  t.deepEqual(sizeOf({ width: 4 }, { width: 4000, height: 2 }), [4, 4]);
});

test('anamorphic video keeps its samples where the codec carries their shape, and images and other codecs have square ones', (t) => {
  const wide = { width: 720, height: 576, sar: { num: 64, den: 45 } };
  t.deepEqual(sizeOf({ height: 288 }, wide), [360, 288]);
  t.deepEqual(sizeOf({ codec: 'vp8', height: 288 }, wide), [512, 288]);
  t.deepEqual(sizeOf({ codec: 'av1' }, wide), [1024, 576]);
  t.deepEqual(sizeOf({ codec: 'vp9', width: 360, height: 288 }, wide), [360, 288], 'what is asked for');
  const images = [{ name: 'i', codec: 'jpeg', height: 288 }];
  const plan = planTracks(profile({ encodes: { videos: [{ bypass: true }], images } }), [{ ...VIDEO, ...wide }, AUDIO]);
  t.like(plan[1]?.encoding, { width: 512, height: 288 });
});

test('an encode waits for a size that it takes from the source, and for no other', (t) => {
  const unknown = { width: 0, height: 0 };
  t.is(video({ width: 640 }, unknown), undefined);
  t.is(video({}, unknown), undefined);
  t.deepEqual(sizeOf({ width: 640, height: 360 }, unknown), [640, 360]);
});

test('decisions of a profile stay when the source changes', (t) => {
  const before = video({ height: 360 });
  const known = new Map([[before?.key ?? '', before?.encoding as VideoEncoding]]);
  t.is(video({ height: 360 }, { width: 640, height: 480, framerate: 25 }, { known })?.encoding, before?.encoding);
  const ifMatch = { height: 360, bypassIfMatch: { height: 'eq' } };
  t.is(video(ifMatch, { width: 480, height: 360 }, { known })?.encoding, undefined, 'bypass rules are asked anew');
});

test('the frame rate that comes out is the configured, the declared, or the measured one', (t) => {
  const rates = (...given: Parameters<typeof video>) => {
    const { framerate, skipFrames, expectedFramerate } = encodingOf(...given) as VideoEncoding;
    return [framerate, skipFrames, expectedFramerate];
  };
  t.deepEqual(rates({ framerate: 15 }), [15, undefined, 15]);
  t.deepEqual(rates({}), [0, undefined, 30]);
  t.deepEqual(rates({ framerate: 15, skipFrames: 2 }), [0, 2, 10], 'skipping rules over the rate');
  t.deepEqual(rates({ skipFrames: 0 }), [0, 0, 30]);
  t.deepEqual(rates({}, { framerate: 0 }, { measured: () => 24.97 }), [0, undefined, 24]);
  t.deepEqual(rates({}, { framerate: 0 }, { measured: () => 27.6 }), [0, undefined, 30], 'it divides the clock');
  t.deepEqual(rates({}, { framerate: 0 }, { measured: () => 2 }), [0, undefined, 5]);
  t.deepEqual(rates({}, { framerate: 0 }), [0, undefined, 30], 'nobody knows');
});

test('an interval of key frames is one in seconds', (t) => {
  const keys = (...given: Parameters<typeof video>) => encodingOf(...given)?.keyFrames;
  t.is(keys({}), 1, "one second's frames");
  t.is(keys({ keyFrameInterval: 60 }), 2);
  t.is(keys({ keyFrameInterval: 60, framerate: 15 }), 4);
  t.is(keys({ keyFrameInterval: 30, skipFrames: 2 }), 3);
  t.is(keys({ keyFrameInterval: 1500, keyFrameIntervalType: 'time' }), 1.5);
  t.is(keys({ keyFrameInterval: 50 }, { framerate: 0 }, { measured: () => 25 }), 2);
});

test('the reported key frame interval is the configured one, in frames', (t) => {
  const told = (...given: Parameters<typeof video>) => (encodingOf(...given) as VideoEncoding).keyFrameInterval;
  t.is(told({}), 0);
  t.is(told({ framerate: 15 }), 0);
  t.is(told({ keyFrameInterval: 60 }), 60);
  t.is(told({ keyFrameInterval: 1500, keyFrameIntervalType: 'time' }), 45);
  t.is(told({ keyFrameInterval: 1500, keyFrameIntervalType: 'time', framerate: 10 }), 15);
});

test("beside the bypassed source, key frames are the source's unless something else is asked for", (t) => {
  const keys = (encode: object, other: object = { name: 'b', bypass: true }) =>
    encodingOf(encode, {}, undefined, [other])?.keyFrames;
  t.is(keys({}), 'source');
  t.is(keys({ framerate: 30 }), 'source');
  t.is(keys({ framerate: 29.97 }), 'source');
  t.is(keys({ skipFrames: 0 }), 'source');
  t.is(keys({ framerate: 15 }), 1);
  t.is(keys({ skipFrames: 1 }), 1);
  t.is(keys({ keyFrameInterval: 30 }), 1);
  t.is(keys({}, { name: 'b', codec: 'h264', bitrate: 1, bypassIfMatch: { codec: 'eq' } }), 'source');
  t.is(keys({}, { name: 'b', codec: 'vp8', bitrate: 1, bypassIfMatch: { codec: 'eq' } }), 1);
});

test('codec names know no case, and an old suffix names the module', (t) => {
  const codec = (name: string, encode: object = {}) => {
    const { codec, modules } = encodingOf({ codec: name, ...encode }) as VideoEncoding;
    return [codec, modules];
  };
  t.deepEqual(codec('H264'), ['H264', undefined]);
  t.deepEqual(codec('Hevc'), ['H265', undefined]);
  t.deepEqual(codec('h264_nvenc'), ['H264', 'nv']);
  t.deepEqual(codec('h264_openh264'), ['H264', 'openh264']);
  t.deepEqual(codec('h264_qsv', { modules: 'x264' }), ['H264', 'x264']);
});

test('a codec that is unknown or of the wrong kind is a problem of its track', (t) => {
  const plan = (encodes: object) => planTracks(profile({ encodes }), [VIDEO, AUDIO] as Track[]);
  const [strange] = plan({ videos: [{ name: 'v', codec: 'theora', bitrate: 1 }] });
  t.like(strange, { type: 'video', variantName: 'v', encoding: undefined, problem: 'unknown codec theora' });
  t.is(plan({ videos: [{ name: 'v', codec: 'aac', bitrate: 1 }] })[0]?.problem, 'aac is not a video codec');
  t.is(plan({ audios: [{ name: 'a', codec: 'H264', bitrate: 1 }] })[0]?.problem, 'H264 is not an audio codec');
  t.is(plan({ audios: [{ name: 'a', codec: 'constructor', bitrate: 1 }] })[0]?.problem, 'unknown codec constructor');
});

test('the other options of a video go along', (t) => {
  const options = { preset: 'fast', profile: 'main', bFrames: 2, lookahead: 10, extraOptions: 'aq-mode=1' };
  t.like(encodingOf({ ...options, threadCount: 3 }), { ...options, threads: 3, type: 'video', bitrate: 1_000_000 });
  t.like(encodingOf({}), { bFrames: 0, lookahead: -1, threads: -1, preset: undefined, profile: undefined });
  t.is(encodingOf({ profile: 'baseline', bFrames: 2 })?.bFrames, 0);
});

test('sound takes from the source what is not configured', (t) => {
  const sound = (encode: object, input: object = {}) => {
    const audios = [{ name: 'a', codec: 'aac', bitrate: 64_000, ...encode }];
    return planTracks(profile({ encodes: { audios } }), [{ ...AUDIO, ...input }])[0]?.encoding as AudioEncoding;
  };
  t.like(sound({}, { samplerate: 44_100, channels: 1 }), { codec: 'AAC', samplerate: 44_100, channels: 1 });
  t.like(sound({ samplerate: 22_050, channel: 6 }), { samplerate: 22_050, channels: 2 });
  t.is(sound({}, { channels: 6 }).channels, 2);
  t.is(sound({ channel: 1 }).channels, 1);
  t.is(sound({ codec: 'opus', samplerate: 44_100 }).samplerate, 48_000);
});

test('thumbnails come once a second unless configured otherwise', (t) => {
  const image = (encode: object) => {
    const images = [{ name: 'i', codec: 'jpeg', ...encode }];
    const [planned] = planTracks(profile({ encodes: { videos: [{ bypass: true }], images } }), [VIDEO, AUDIO]).slice(1);
    return planned?.encoding as ImageEncoding;
  };
  t.like(image({ width: 320 }), {
    type: 'image',
    codec: 'JPEG',
    width: 320,
    height: 180,
    framerate: 1,
    skipFrames: undefined,
  });
  t.like(image({ framerate: 0.2 }), { framerate: 0.2 });
  t.like(image({ skipFrames: 29 }), { framerate: 0, skipFrames: 29 });
});

test('encodes of one name are tracks of their own, and a key stays when tracks come', (t) => {
  const twice = profile({ encodes: { audios: [SOUND, { ...SOUND, bitrate: 64_000 }] } });
  const keys = (inputs: Track[]) => planTracks(twice, inputs).map(({ key }) => key);
  t.is(new Set(keys([AUDIO])).size, 2);
  t.deepEqual(keys([AUDIO, VIDEO]), keys([AUDIO]));
});
