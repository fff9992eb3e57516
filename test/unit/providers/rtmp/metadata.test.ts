import test from 'ava';
import { UNDECLARED } from '../../../../src/providers/intake/declared.ts';
import { NOTHING_DECLARED, readMetadata } from '../../../../src/providers/rtmp/metadata.ts';
import type { AmfObject } from '../../../../src/protocols/rtmp/amf-value.ts';

const read = (properties: AmfObject) => readMetadata(['@setDataFrame', 'onMetaData', properties]);

test('onMetaData as encoders send it', (t) => {
  t.deepEqual(
    read({
      videocodecid: 'avc1',
      audiocodecid: 10,
      width: 1280,
      height: 720,
      framerate: 29.97,
      videodatarate: 2500,
      audiodatarate: 160,
    }),
    {
      announced: { video: [0], audio: [0] },
      video: new Map([[0, { ...UNDECLARED, width: 1280, height: 720, framerate: 29.97, bitrate: 2_500_000 }]]),
      audio: new Map([[0, { ...UNDECLARED, bitrate: 160_000 }]]),
    },
  );
  t.deepEqual(read({ videocodecid: 7 })?.announced, { video: [0], audio: [] });
});

test('invalid values of RTMP metadata count as missing', (t) => {
  t.deepEqual(
    readMetadata(['onMetaData', { width: -1, height: NaN, framerate: 'x', videocodecid: 0, language: 'x y' }]),
    { announced: undefined, video: new Map([[0, UNDECLARED]]), audio: new Map([[0, UNDECLARED]]) },
  );
  t.is(readMetadata(['onTextData', {}]), undefined);
  t.is(readMetadata(['onMetaData']), undefined);
  t.is(readMetadata([]), undefined);
  t.is(NOTHING_DECLARED.announced, undefined);
});

test('the tracks of a source follow the maps of Enhanced RTMP', (t) => {
  const declared = read({
    videocodecid: 7,
    audiocodecid: 10,
    width: 1920,
    height: 1080,
    framerate: 30,
    videodatarate: 6000,
    audiodatarate: 128,
    videoTrackIdInfoMap: { 1: { width: 1280, height: 720, videodatarate: 3000 }, 2: { width: 640, height: 360 } },
    audioTrackIdInfoMap: { 1: { audiodatarate: 64, channels: 1, samplerate: 44_100 } },
  });
  t.deepEqual(declared?.announced, { video: [0, 1, 2], audio: [0, 1] });
  t.like(declared?.video.get(0), { width: 1920, height: 1080, framerate: 30, bitrate: 6_000_000 });
  t.like(declared?.video.get(1), { width: 1280, height: 720, framerate: 30, bitrate: 3_000_000 });
  t.like(declared?.video.get(2), { width: 640, height: 360, bitrate: 6_000_000 });
  t.like(declared?.audio.get(0), { bitrate: 128_000 });
  t.like(declared?.audio.get(1), { bitrate: 64_000 });
});

test('languages: of a file as ffmpeg writes it, and of tracks, each of its own', (t) => {
  const declared = read({
    audiocodecid: 10,
    language: 'eng',
    audioTrackIdInfoMap: { 1: { language: 'kor' }, 2: { lang: 'pt-BR' }, 3: {}, 4: { language: 'no"such' } },
  });
  t.deepEqual(
    [0, 1, 2, 3, 4].map((trackId) => declared?.audio.get(trackId)?.language),
    ['eng', 'kor', 'pt-BR', undefined, undefined],
  );
  t.is(read({ language: 'eng', audioTrackIdInfoMap: { 0: { language: 'deu' } } })?.audio.get(0)?.language, 'deu');
  t.is(read({ language: `a${'-a'.repeat(100)}` })?.audio.get(0)?.language, undefined);
});

test('maps that are none, ids that are none, and more tracks than are taken', (t) => {
  for (const map of [null, 7, 'x', [{}], Buffer.of(1)]) {
    t.deepEqual(read({ audiocodecid: 10, audioTrackIdInfoMap: map as null })?.announced, { video: [], audio: [0] });
  }
  const keys = { '-1': {}, '01': {}, '1.5': {}, 256: {}, x: {}, 3: 7, 4: {} };
  t.deepEqual(read({ audiocodecid: 10, audioTrackIdInfoMap: keys })?.announced?.audio, [0, 4]);
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, id) => [id, {}]));
  t.is(read({ videocodecid: 7, videoTrackIdInfoMap: many })?.announced?.video.length, 16);
});
