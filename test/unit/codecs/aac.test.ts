import test from 'ava';
import * as adts from '../../../src/codecs/aac-adts.ts';
import * as aac from '../../../src/codecs/aac.ts';
import { BitstreamError, BitWriter } from '../../../src/codecs/bits.ts';
import { box, samples, vector } from './vectors.ts';

const parse = (hex: string) => aac.parseAudioSpecificConfig(Buffer.from(hex, 'hex'));
const LC = { objectType: 2, samplesPerFrame: 1024, sbr: false, ps: false };

test('AAC LC', (t) => {
  t.deepEqual(parse('1210'), {
    ...LC,
    samplerate: 44_100,
    channelConfiguration: 2,
    channels: 2,
    outputSamplerate: 44_100,
    outputChannels: 2,
  } as aac.AacConfig);
  t.like(parse('1190'), { ...LC, samplerate: 48_000, channels: 2 });
  t.like(parse('11b8'), { ...LC, channelConfiguration: 7, channels: 8 });
  t.like(parse('1214'), { samplesPerFrame: 960 });
  t.like(parse('121056e500'), { ...LC, outputSamplerate: 44_100 }, 'an extension that says there is no SBR');
  t.is(aac.codecString(parse('1210')), 'mp4a.40.2');
});

test('HE-AAC is read with hierarchical signalling and after the sync word', (t) => {
  const he = { objectType: 2, samplerate: 22_050, channels: 2, sbr: true, ps: false, outputSamplerate: 44_100 };
  t.like(parse('2b920800'), { ...he, outputChannels: 2 });
  t.like(parse('139056e5a0'), { ...he, outputChannels: 2 });
  t.is(aac.codecString(parse('2b920800')), 'mp4a.40.5');
  t.is(aac.codecString(parse('139056e5a0')), 'mp4a.40.5');
});

test('HE-AAC v2 is read with hierarchical signalling and after the sync words', (t) => {
  const v2 = {
    objectType: 2,
    samplerate: 22_050,
    channels: 1,
    sbr: true,
    ps: true,
    outputSamplerate: 44_100,
    outputChannels: 2,
  };
  t.like(parse('eb8a0800'), v2);
  const synced = new BitWriter().write(2, 5).write(7, 4).write(1, 4).write(0, 3);
  synced.write(0x2b7, 11).write(5, 5).flag(true).write(4, 4).write(0x548, 11).flag(true);
  t.like(aac.parseAudioSpecificConfig(synced.finish()), v2);
  t.is(aac.codecString(parse('eb8a0800')), 'mp4a.40.29');
});

test('sampling rates that are escaped', (t) => {
  const config = aac.buildAudioSpecificConfig({ samplerate: 37_800, channels: 1 });
  t.like(aac.parseAudioSpecificConfig(config), { ...LC, samplerate: 37_800, channels: 1 });
});

test('channels of a program config element are read', (t) => {
  const writer = new BitWriter().write(2, 5).write(3, 4).write(0, 4).write(0, 3);
  // two pairs and a single in front, a pair behind, one LFE, one data and one coupling element
  writer.write(0, 4).write(1, 2).write(3, 4).write(3, 4).write(0, 4).write(1, 4).write(1, 2).write(1, 3).write(1, 4);
  writer.flag(true).write(1, 4).flag(false).flag(true).write(0, 3);
  for (const pair of [false, true, true, true]) writer.flag(pair).write(0, 4);
  writer.write(0, 4).write(0, 4).flag(false).write(0, 4);
  writer.align();
  writer.write(3, 8).write(0x616263, 24);
  writer.write(0x2b7, 11).write(5, 5).flag(false);
  t.like(aac.parseAudioSpecificConfig(writer.finish()), { channelConfiguration: 0, channels: 8, sbr: false });
});

test('configs that are written are read again', (t) => {
  for (const channels of [1, 2, 3, 4, 5, 6, 7, 8]) {
    for (const samplerate of [8000, 44_100, 48_000, 96_000]) {
      for (const [sbr, ps] of [
        [false, false],
        [true, false],
        [true, true],
      ] as const) {
        for (const samplesPerFrame of [1024, 960] as const) {
          const written = { objectType: 2, samplerate, channels, sbr, ps, samplesPerFrame };
          t.like(aac.parseAudioSpecificConfig(aac.buildAudioSpecificConfig(written)), {
            ...written,
            outputSamplerate: sbr ? samplerate * 2 : samplerate,
          });
        }
      }
    }
  }
  t.is(aac.buildAudioSpecificConfig({ samplerate: 44_100, channels: 2 }).toString('hex'), '1210');
  const v2 = { samplerate: 22_050, channels: 1, sbr: true, ps: true };
  t.is(aac.buildAudioSpecificConfig(v2).toString('hex'), 'eb8a0800');
});

test('configs that are no AAC this server carries are refused', (t) => {
  for (const hex of ['', '12', 'f8e85000', '1000', '1680', '12 48'.replace(' ', ''), 'b98c', '2b92']) {
    t.throws(() => parse(hex), { instanceOf: BitstreamError }, hex);
  }
  t.throws(() => aac.buildAudioSpecificConfig({ samplerate: 48_000, channels: 9 }), { instanceOf: BitstreamError });
  t.throws(() => aac.buildAudioSpecificConfig({ samplerate: 48_000, channels: 0 }), { instanceOf: BitstreamError });
});

test("the judge's ADTS and raw frames are the same", (t) => {
  const data = vector('aac-stereo.adts');
  const frames = [...adts.adtsFrames(data)];
  t.deepEqual(
    frames.map(({ payload }) => payload),
    samples(vector('aac-stereo.mp4')),
  );
  t.deepEqual(frames[0]?.header, {
    objectType: 2,
    samplerate: 44_100,
    channelConfiguration: 2,
    channels: 2,
    headerLength: 7,
    frameLength: 80,
    blocks: 1,
  });
  const again = frames.flatMap(({ header, payload }) => [adts.buildAdtsHeader(header, payload.length), payload]);
  t.deepEqual(Buffer.concat(again), data);
  const esds = box(vector('aac-stereo.mp4'), 'esds');
  t.true(esds.includes(aac.buildAudioSpecificConfig(frames[0]?.header as adts.AdtsHeader)));
});

test('an ADTS checksum is no part of the frame', (t) => {
  const header = adts.buildAdtsHeader({ objectType: 2, samplerate: 48_000, channelConfiguration: 1 }, 4);
  header[1] = 0xf0;
  const [frame] = [...adts.adtsFrames(Buffer.concat([header, Buffer.of(0xaa, 0xbb, 1, 2)]))];
  t.is(frame?.header.headerLength, 9);
  t.deepEqual(frame?.payload, Buffer.of(1, 2));
});

test('ADTS with wrong fields is refused', (t) => {
  const format = { objectType: 2, samplerate: 48_000, channelConfiguration: 2 };
  const good = Buffer.concat([adts.buildAdtsHeader(format, 2), Buffer.alloc(2)]);
  const wrong: [string, (data: Buffer) => unknown][] = [
    ['sync', (data) => (data[0] = 0xfe)],
    ['layer', (data) => (data[1] = 0xf3)],
    ['sampling rate', (data) => (data[2] = 0x7c)],
    ['length', (data) => (data[4] = 0)],
    ['blocks', (data) => (data[6] = 1)],
  ];
  for (const [what, spoil] of wrong) {
    const data = Buffer.from(good);
    spoil(data);
    t.throws(() => [...adts.adtsFrames(data)], { instanceOf: BitstreamError }, what);
  }
  for (let size = 1; size < good.length; size++) {
    t.throws(() => [...adts.adtsFrames(good.subarray(0, size))], { instanceOf: BitstreamError }, `${size} bytes`);
  }
  for (const fields of [{ samplerate: 37_800 }, { objectType: 5 }, { channelConfiguration: 8 }]) {
    t.throws(() => adts.buildAdtsHeader({ ...format, ...fields }, 1), { instanceOf: BitstreamError });
  }
  t.throws(() => adts.buildAdtsHeader(format, 8185), { instanceOf: BitstreamError });
});
