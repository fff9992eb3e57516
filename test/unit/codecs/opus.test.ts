import test from 'ava';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import * as opus from '../../../src/codecs/opus.ts';
import { box, samples, vector } from './vectors.ts';

/** The identification header: alone in the first page of an Ogg file, behind a segment table of one entry. */
function opusHead(ogg: Buffer): Buffer {
  return ogg.subarray(28, 28 + (ogg[27] as number));
}

const STEREO = {
  channels: 2,
  preSkip: 312,
  inputSamplerate: 48_000,
  outputGain: 0,
  mappingFamily: 0,
  mapping: undefined,
};

test('OpusHead and dOps of the judge, from one to the other', (t) => {
  const expected = {
    stereo: STEREO,
    51: {
      ...STEREO,
      channels: 6,
      mappingFamily: 1,
      mapping: { streams: 4, coupled: 2, channels: Buffer.of(0, 4, 1, 2, 3, 5) },
    },
  };
  for (const [name, config] of Object.entries(expected)) {
    const head = opusHead(vector(`opus-${name}.ogg`));
    const record = box(vector(`opus-${name}.mp4`), 'dOps');
    t.deepEqual(opus.parseOpusHead(head), config, name);
    t.deepEqual(opus.parseOpusConfig(record), config, name);
    t.deepEqual(opus.buildOpusHead(opus.parseOpusConfig(record)), head, name);
    t.deepEqual(opus.buildOpusConfig(opus.parseOpusHead(head)), record, name);
  }
});

test('gain is signed, and a mapping may name silence', (t) => {
  const config = {
    channels: 3,
    preSkip: 3840,
    inputSamplerate: 44_100,
    outputGain: -256,
    mappingFamily: 255,
    mapping: { streams: 2, coupled: 0, channels: Buffer.of(0, 255, 1) },
  };
  t.deepEqual(opus.parseOpusHead(opus.buildOpusHead(config)), config);
  t.deepEqual(opus.parseOpusConfig(opus.buildOpusConfig(config)), config);
});

test('the duration of real packets', (t) => {
  const packets = samples(vector('opus-stereo.mp4'));
  t.true(packets.length >= 4);
  for (const packet of packets) t.is(opus.packetSamples(packet), 960);
});

test('durations by configuration and frame count (RFC 6716 table 2)', (t) => {
  const samplesOf = (config: number, code: number, ...rest: number[]) =>
    opus.packetSamples(Buffer.of((config << 3) | code, ...rest));
  t.deepEqual(
    [0, 1, 2, 3].map((config) => samplesOf(config, 0)),
    [480, 960, 1920, 2880],
    'SILK',
  );
  t.deepEqual(
    [12, 13, 14, 15].map((config) => samplesOf(config, 0)),
    [480, 960, 480, 960],
    'hybrid',
  );
  t.deepEqual(
    [28, 29, 30, 31].map((config) => samplesOf(config, 0)),
    [120, 240, 480, 960],
    'CELT',
  );
  t.is(samplesOf(31, 1), 1920);
  t.is(samplesOf(31, 2), 1920);
  t.is(samplesOf(31, 3, 0x80 | 6), 5760);
  t.is(samplesOf(28, 3, 48), 5760);
});

test('packets of no or too many frames are refused', (t) => {
  for (const packet of [[], [0xfb], [0xfb, 0], [0xfb, 7], [0x1b, 3], [0xe3, 49]]) {
    t.throws(() => opus.packetSamples(Buffer.from(packet)), { instanceOf: BitstreamError }, String(packet));
  }
});

test('wrong headers are refused', (t) => {
  const head = opusHead(vector('opus-51.ogg'));
  const record = box(vector('opus-51.mp4'), 'dOps');
  for (let size = 0; size < head.length; size++) {
    t.throws(() => opus.parseOpusHead(head.subarray(0, size)), { instanceOf: BitstreamError });
  }
  for (let size = 0; size < record.length; size++) {
    t.throws(() => opus.parseOpusConfig(record.subarray(0, size)), { instanceOf: BitstreamError });
  }
  const spoilt = (at: number, value: number) => {
    const copy = Buffer.from(record);
    copy[at] = value;
    return copy;
  };
  for (const [at, value] of [
    [0, 1],
    [1, 0],
    [10, 0],
    [11, 0],
    [12, 5],
    [13, 6],
  ] as const) {
    t.throws(() => opus.parseOpusConfig(spoilt(at, value)), { instanceOf: BitstreamError }, `byte ${at} = ${value}`);
  }
});
