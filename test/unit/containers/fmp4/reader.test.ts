import test from 'ava';
import { fragment, fragmentHead, type Run } from '../../../../src/containers/fmp4/fragment.ts';
import { fragmentedMovie, initSegment } from '../../../../src/containers/fmp4/init.ts';
import { readInit, readSamples } from '../../../../src/containers/fmp4/reader.ts';
import { audioTrack, AVC_HIGH, videoTrack } from '../../../support/media/packets.ts';
import { seeded } from '../../codecs/vectors.ts';

const VIDEO = videoTrack({ config: AVC_HIGH, width: 1280, height: 720 });
const MOVIE = fragmentedMovie([VIDEO, audioTrack()], 1000);
const RUNS: readonly Run[] = [
  {
    type: 'video',
    trackId: 1,
    baseTime: 2 ** 33,
    samples: [
      { duration: 3000, compositionOffset: 6000, key: true, data: Buffer.from('aabbcc', 'hex') },
      { duration: 2999, compositionOffset: -1, key: false, data: Buffer.from('dd', 'hex') },
    ],
  },
  {
    type: 'audio',
    trackId: 2,
    baseTime: Math.round((2 ** 33 * 48) / 90),
    samples: [{ duration: 1024, compositionOffset: 0, key: true, data: Buffer.from('ee', 'hex') }],
  },
];
const WHOLE = Buffer.concat([fragmentHead(1, RUNS), ...RUNS.flatMap(({ samples }) => samples.map(({ data }) => data))]);
const never = (error: Error): void => {
  throw error;
};

test('the tracks of an initialization are read as they were written', (t) => {
  const [video, audio] = readInit(MOVIE, never);
  t.like(video, { id: 1, timescale: 90_000, begin: 0, description: { codec: 'H264', width: 1280, height: 720 } });
  t.deepEqual(video?.description.config, AVC_HIGH);
  t.like(audio, { id: 2, timescale: 48_000, description: { codec: 'AAC', samplerate: 48_000, channels: 2 } });
});

test('tracks of other codecs are left out, and told', (t) => {
  const init = initSegment(VIDEO);
  init.write('dvh1', init.indexOf('avc1', init.indexOf('stsd')), 'latin1');
  const told: string[] = [];
  t.deepEqual(
    readInit(init, ({ message }) => told.push(message)),
    [],
  );
  t.is(told.length, 1);
});

test('the samples of a fragment with two tracks are read in the order of their times', (t) => {
  const samples = readSamples(WHOLE, readInit(MOVIE, never));
  t.deepEqual(
    samples.map(({ track, time, compositionOffset, data }) => [
      track.id,
      time,
      compositionOffset,
      data.toString('hex'),
    ]),
    [
      [1, 2 ** 33, 6000, 'aabbcc'],
      [2, Math.round((2 ** 33 * 48) / 90), 0, 'ee'],
      [1, 2 ** 33 + 3000, -1, 'dd'],
    ].sort(([a, x], [b, y]) => Number(x) / (a === 1 ? 90_000 : 48_000) - Number(y) / (b === 1 ? 90_000 : 48_000)),
  );
});

test('samples of other tracks, and those before the beginning, are known', (t) => {
  const [track] = readInit(initSegment(VIDEO), never);
  if (track === undefined) return t.fail();
  const samples = [{ duration: 1, compositionOffset: 0, key: true, data: Buffer.from('aa', 'hex') }];
  const bytes = fragment('video', 1, 10, samples);
  t.deepEqual(readSamples(bytes, []), []);
  t.like(readSamples(bytes, [{ ...track, begin: 30 }])[0], { time: -20 });
});

test('damaged and truncated bytes are rejected', (t) => {
  const random = seeded(7);
  const tracks = readInit(MOVIE, never);
  const attempt = (read: () => unknown): void => {
    try {
      read();
    } catch (error) {
      t.true(error instanceof RangeError, String(error));
    }
  };
  for (const [whole, read] of [
    [MOVIE, (bytes: Buffer) => readInit(bytes, () => undefined)],
    [WHOLE, (bytes: Buffer) => readSamples(bytes, tracks)],
  ] as const) {
    for (let end = 0; end < whole.length; end++)
      t.throws(() => read(whole.subarray(0, end)), { instanceOf: RangeError });
    for (let i = 0; i < 1000; i++) {
      const bytes = Buffer.from(whole);
      bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      attempt(() => read(bytes));
    }
  }
});

test('runs that tell of more samples than a fragment may have are refused, also without any data', (t) => {
  const box = (type: string, ...content: Buffer[]): Buffer => {
    const body = Buffer.concat(content);
    const head = Buffer.alloc(8);
    head.writeUInt32BE(8 + body.length);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, body]);
  };
  const words = (...numbers: number[]): Buffer =>
    Buffer.concat(numbers.map((n) => Buffer.from(n.toString(16).padStart(8, '0'), 'hex')));
  // no sizes and no flags: each sample is as large as `tfhd` says, which is nothing
  const run = box('trun', words(0x000001, 100_000, 100));
  const track = box('traf', box('tfhd', words(0x000010, 1, 0)), ...Array.from({ length: 50 }, () => run));
  const whole = Buffer.concat([box('moof', track), box('mdat')]);
  t.throws(() => readSamples(whole, readInit(MOVIE, never)), {
    instanceOf: RangeError,
    message: 'a fragment of too many samples',
  });
});
