import test from 'ava';
import type { VideoEncoding } from '../../../src/transcode/encoding.ts';
import { FFMPEG7, FFMPEGS } from '../../support/media/ffmpeg.ts';
import {
  audioJob,
  changed,
  imageJob,
  onlyStream,
  PICTURE,
  recordSource,
  rounded,
  SOUND,
  timesOf,
  videoJob,
} from './command-support.ts';
import { commandFor, runWork, type Output, type Recording } from '../../unit/transcode/run-command.ts';

const TRACKS = [PICTURE, SOUND];
let source: Recording;
let slowSource: Recording;

test.before(async () => {
  source = await recordSource();
  slowSource = await recordSource({ seconds: 6, rate: 10 });
});

const first = (outputs: readonly Output[]) => outputs[0] as Output;
const modulesOf = (ffmpeg: string): Partial<VideoEncoding>[] => [
  { modules: 'x264' },
  { codec: 'H265', modules: 'x265' },
  { codec: 'VP8' },
  { codec: 'VP9' },
  { codec: 'AV1', modules: 'libaom' },
  { codec: 'AV1', modules: 'svtav1' },
  ...(ffmpeg === FFMPEG7 ? [{ modules: 'openh264' }] : []),
];
const isBetween = (value: number, low: number, high: number) => value >= low && value <= high;

for (const [name, ffmpeg] of FFMPEGS) {
  test.serial(`${name}: every frame comes out with the time it came with, and exact GOPs`, async (t) => {
    const jobs = [videoJob(), videoJob({ framerate: 30 }), videoJob({ framerate: 29.97, keyFrames: 20 / 30 })];
    const { outputs, stderr, code } = await runWork(ffmpeg, source, { tracks: TRACKS, jobs });
    t.is(code, 0, stderr);
    t.is(stderr, '');
    const times = rounded(timesOf(source));
    for (const output of outputs) t.deepEqual(rounded(output.times), times);
    const everyOf = (gop: number) => times.filter((_, index) => index % gop === 0);
    t.deepEqual(
      outputs.map(({ keys }) => rounded(keys)),
      [everyOf(30), everyOf(30), everyOf(20)],
    );
  });

  test.serial(
    `${name}: renditions of lower rates are regular, double nothing, and switch at the same frames`,
    async (t) => {
      const rates = [30, 24, 20, 15, 10, 5];
      // a source that began in the middle of somebody's grid
      const shifted = changed(source, 0, (frame) => [{ ...frame, pts: frame.pts + 1440 }]);
      const { outputs } = await runWork(ffmpeg, shifted, {
        tracks: TRACKS,
        jobs: rates.map((framerate) => videoJob({ framerate })),
      });
      const inputs = new Set(rounded(timesOf(shifted)));
      for (const [index, { times, keys }] of outputs.entries()) {
        const rate = rates[index] as number;
        t.is(times.length, rate * 4, `frames at ${rate}`);
        t.is(new Set(times).size, times.length);
        t.true(
          rounded(times).every((time) => inputs.has(time)),
          'each is a frame of the source',
        );
        const steps = times.slice(1).map((time, place) => time - (times[place] as number));
        t.true(Math.max(...steps) < 1 / rate + 1 / 30 + 0.002, `steps at ${rate}`);
        t.deepEqual(rounded(keys), rounded(first(outputs).keys));
      }
    },
  );

  test.serial(`${name}: a higher rate doubles frames, skipping leaves out, an unknown source passes`, async (t) => {
    const unknown = { ...PICTURE, framerate: 0 };
    const work = async (jobs: ReturnType<typeof videoJob>[], tracks = TRACKS) =>
      (await runWork(ffmpeg, source, { tracks, jobs })).outputs.map(({ times }) => times);
    const [doubled = [], third = []] = await work([
      videoJob({ framerate: 60 }),
      videoJob({ skipFrames: 2, expectedFramerate: 10 }),
    ]);
    t.true(isBetween(doubled.length, 238, 241), String(doubled.length));
    t.deepEqual(
      rounded(third),
      rounded(timesOf(source)).filter((_, index) => index % 3 === 0),
    );
    const [same = [], half = []] = await work(
      [videoJob({ framerate: 30 }, unknown), videoJob({ framerate: 15 }, unknown)],
      [unknown, SOUND],
    );
    t.true(isBetween(same.length, 119, 120), String(same.length));
    t.is(half.length, 60);
  });

  test.serial(`${name}: a gap in the source is one in every rendition, and the grid goes on behind it`, async (t) => {
    const gap = changed(source, 0, (frame, index) =>
      index < 50 ? [frame] : [{ ...frame, pts: frame.pts + 7 * 90_000 + 990 }],
    );
    const { outputs } = await runWork(ffmpeg, gap, { tracks: TRACKS, jobs: [videoJob(), videoJob({ framerate: 10 })] });
    t.is(first(outputs).times.length, 120);
    const slow = outputs[1]?.times ?? [];
    t.true(isBetween(slow.length, 39, 42), String(slow.length));
    t.is(slow.slice(1).filter((time, index) => time - (slow[index] as number) > 0.15).length, 1);
  });

  test.serial(`${name}: key frames of the source are followed, and a cut of the scene makes none`, async (t) => {
    const irregular = await recordSource({
      pattern: 'testsrc2=size=160x90:rate=30,hue=h=90*floor(n/13)',
      codec: [
        '-c:v',
        'libx264',
        '-preset',
        'ultrafast',
        '-bf',
        '0',
        '-sc_threshold',
        '0',
        '-force_key_frames',
        '0.5,0.9,2.3',
      ],
    });
    const codecs = [{ modules: 'x264' }, { codec: 'VP8' as const }];
    const jobs = codecs.flatMap((codec) => [videoJob({ ...codec, keyFrames: 'source' }), videoJob(codec)]);
    const { outputs } = await runWork(ffmpeg, irregular, { tracks: TRACKS, jobs });
    const times = (wanted: (key: boolean, index: number) => boolean) =>
      rounded(
        irregular.frames
          .filter(({ stream }) => stream === 0)
          .filter(({ key }, index) => wanted(key, index))
          .map(({ pts }) => pts / 90_000),
      );
    const [theirs, own] = [times((key) => key), times((_, index) => index % 30 === 0)];
    t.true(theirs.length > 4);
    t.deepEqual(
      outputs.map(({ keys }) => rounded(keys)),
      [theirs, own, theirs, own],
    );
  });

  test.serial(`${name}: a source with B-frames loses none, and comes in order`, async (t) => {
    const reordered = await recordSource({
      seconds: 2,
      codec: ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', '3', '-b_strategy', '0'],
    });
    const { outputs } = await runWork(ffmpeg, reordered, { tracks: TRACKS, jobs: [videoJob()] });
    t.deepEqual(rounded(first(outputs).times), rounded(timesOf(reordered)));
  });

  test.serial(`${name}: a bitrate is kept whatever the frame rate is, before and behind the encoder`, async (t) => {
    const modules = modulesOf(ffmpeg);
    const slow = { ...PICTURE, framerate: 10 };
    const ofSlow = await runWork(ffmpeg, slowSource, {
      tracks: [slow, SOUND],
      jobs: modules.map((module) => videoJob({ ...module, bitrate: 100_000 }, slow)),
    });
    const ofFast = await runWork(ffmpeg, source, {
      tracks: TRACKS,
      jobs: modules.flatMap((module) => [
        videoJob({ ...module, bitrate: 150_000 }),
        videoJob({ ...module, bitrate: 100_000, framerate: 10 }),
      ]),
    });
    const told = (output: Output | undefined, wanted: number, index: number, what: string) => {
      const bitrate = output?.bitrate ?? 0;
      const { modules: module = modules[index]?.codec } = modules[index] ?? {};
      t.true(isBetween(bitrate, 0.8 * wanted, 1.2 * wanted), `${module} ${what}: ${Math.round(bitrate)} of ${wanted}`);
    };
    modules.forEach((_, index) => {
      told(ofSlow.outputs[index], 100_000, index, 'of 10');
      told(ofFast.outputs[2 * index], 150_000, index, 'of 30');
      told(ofFast.outputs[2 * index + 1], 100_000, index, 'of 30 to 10');
    });
  });

  test.serial(`${name}: an output that is resumed begins with a key frame at the given time`, async (t) => {
    const jobs = [
      { ...videoJob(), resumeAt: 1.5 },
      { ...videoJob({ framerate: 10 }), resumeAt: 1.5 },
      { ...videoJob({ codec: 'VP8', keyFrames: 'source' }), resumeAt: 1.5 },
      { ...audioJob(), resumeAt: 1.5 },
      { ...imageJob('JPEG'), resumeAt: 1.5 },
    ];
    const { outputs, stderr } = await runWork(ffmpeg, source, { tracks: TRACKS, jobs });
    t.is(stderr, '');
    const counted = outputs.map(({ times, keys }) => {
      const from = times.findIndex((time) => time >= 1.4999);
      return {
        before: from,
        first: times[from] as number,
        key: keys.includes(times[from] as number),
        keys: rounded(keys),
      };
    });
    const [video, slow, following, sound, image] = counted;
    t.like(video, { before: 1, key: true, keys: [0, 1.5, 2, 3] });
    t.like(slow, { before: 1, key: true, keys: [0, 1.5, 2, 3] });
    t.like(following, { before: 0, key: true, keys: [1.5, 2, 3] });
    t.true(isBetween(outputs[3]?.times[0] ?? 0, 1.5 - 0.022, 1.5), 'by the priming of the encoder earlier');
    t.is(sound?.key, true);
    t.like(image, { before: 0, first: 2 });
  });

  test.serial(`${name}: pictures are files of their format, at their rate`, async (t) => {
    const begin = { JPEG: 'ffd8ff', PNG: '89504e47', WEBP: '52494646', AVIF: '' };
    const codecs = ['JPEG', 'PNG', 'WEBP', 'AVIF'] as const;
    const jobs = [...codecs.map((codec) => imageJob(codec)), imageJob('JPEG', { framerate: 0, skipFrames: 59 })];
    const { outputs, stderr } = await runWork(ffmpeg, source, { tracks: TRACKS, jobs });
    t.is(stderr, '');
    for (const [index, { frames, times, keys }] of outputs.entries()) {
      const codec = codecs[index] ?? 'JPEG';
      t.true(
        frames.every(({ data }) => data.toString('hex').startsWith(begin[codec]) && data.length > 500),
        codec,
      );
      t.deepEqual(rounded(times), index === 4 ? [0, 2] : [0, 1, 2, 3]);
      t.deepEqual(keys, times);
    }
  });

  test.serial(`${name}: sound follows the times of the input through gaps, jumps and drift`, async (t) => {
    const sound = onlyStream(await recordSource({ seconds: 12, pattern: 'color=size=32x32:rate=1' }), 1);
    const cases: Record<string, [Recording, odd: number]> = {
      'as it is': [sound, 0],
      'with a gap': [changed(sound, 0, (frame, index) => (index < 100 || index >= 150 ? [frame] : [])), 1],
      'with a jump': [
        changed(sound, 0, (frame, index) => [{ ...frame, pts: frame.pts + (index < 200 ? 0 : 8 * 48_000) }]),
        1,
      ],
      'with a clock that is set': [
        changed(sound, 0, (frame, index) => [{ ...frame, pts: frame.pts + Math.floor(index / 100) * 2880 }]),
        5,
      ],
      'with a slow clock': [changed(sound, 0, (frame) => [{ ...frame, pts: Math.round(frame.pts * 1.0005) }]), 0],
    };
    const jobs = [
      audioJob({ codec: 'OPUS' }),
      audioJob({ samplerate: 44_100, channels: 1 }),
      audioJob(),
      audioJob({ codec: 'OPUS', bitrate: 128_000 }),
    ];
    for (const [what, [input, odd]] of Object.entries(cases)) {
      const { outputs, stderr } = await runWork(ffmpeg, input, { tracks: [SOUND], jobs });
      t.is(stderr, '');
      const last = timesOf(input).at(-1) as number;
      for (const { stream, times } of outputs) {
        if (stream?.kind !== 'audio') throw new Error('no sound');
        const frame = stream.codecTag === 'Opus' ? 0.02 : 1024 / stream.samplerate;
        const steps = times.slice(1).map((time, index) => time - (times[index] as number));
        t.is(steps.filter((step) => Math.abs(step - frame) > 0.005).length, odd, `${what}: steps`);
        t.true(Math.abs((times.at(-1) as number) - last) < 0.03, `${what}: ends at ${times.at(-1)}, not at ${last}`);
      }
      t.deepEqual(
        outputs.map(({ stream }) => stream?.kind === 'audio' && [stream.samplerate, stream.channels]),
        [
          [48_000, 2],
          [44_100, 1],
          [48_000, 2],
          [48_000, 2],
        ],
      );
    }
  });

  test.serial(`${name}: only key frames are decoded where they are for pictures alone`, async (t) => {
    const decodes = { threadCount: 1, onlyKeyframes: true };
    const images = [imageJob('JPEG', { framerate: 10 })];
    const alone = await runWork(ffmpeg, source, { tracks: TRACKS, jobs: [...images, audioJob()], decodes });
    t.deepEqual(rounded(first(alone.outputs).times), [0, 1, 2, 3]);
    const beside = await runWork(ffmpeg, source, { tracks: TRACKS, jobs: [...images, videoJob()], decodes });
    t.deepEqual(
      beside.outputs.map(({ times }) => times.length),
      [40, 120],
    );
  });

  test.serial(`${name}: presets, profiles, B-frames, lookahead and threads of each module`, async (t) => {
    const modules = modulesOf(ffmpeg);
    const options = { preset: 'fast', profile: 'main', bFrames: 2, lookahead: 10, threads: 2 } as const;
    const short = { ...source, frames: source.frames.filter(({ pts, stream }) => stream === 0 && pts < 90_000) };
    const jobs = modules.map((module) => videoJob({ ...module, ...options, bitrate: 200_000 }));
    const { outputs, stderr } = await runWork(ffmpeg, short, { tracks: TRACKS, jobs });
    t.is(stderr, '');
    for (const [index, { times }] of outputs.entries())
      t.is(times.length, 30, `${modules[index]?.modules ?? modules[index]?.codec}`);
    const { times, stream } = first(outputs);
    t.true(
      times.some((time, index) => index > 0 && time < (times[index - 1] as number)),
      'x264 has B-frames',
    );
    t.is(stream?.extradata[5], 77, 'main profile');
  });
}

test('a track of which nothing is made is left alone', async (t) => {
  const args = await commandFor('ffmpeg', { tracks: TRACKS, jobs: [audioJob()] });
  t.deepEqual(
    args.filter((arg) => arg.startsWith('0:')),
    ['0:1'],
  );
});
