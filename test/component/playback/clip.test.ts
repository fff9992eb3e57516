import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { openFmp4Clip } from '../../../src/playback/clip/fmp4.ts';
import { Mp4Clip } from '../../../src/playback/clip/mp4.ts';
import { initOf, readSegment, segmentsOf } from '../../../src/playback/clip/segments.ts';
import { readNumbers } from '../../support/media/numbered-files.ts';
import { numberedRecording, RATE, type NumberedRecording } from '../../support/recording/numbered-recording.ts';
import { codedPackets, tracksOf } from '../../support/media/coded-packets.ts';
import { cuePacket, interleaved, subtitleTrack } from '../../support/media/packets.ts';
import { clipFile, collect } from '../../support/recording/recorded-mp4.ts';

const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'kiln-clip-'));
test.after.always(() => rm(folder, { recursive: true }));

const MS = 1_700_000_000_000;
const FRAMES = 300;

interface Probe {
  readonly format: { readonly duration: string; readonly start_time: string };
  readonly streams: readonly {
    readonly codec_type: string;
    readonly duration?: string;
    readonly start_time: string;
    readonly nb_read_frames: string;
  }[];
}

async function probe(path: string): Promise<Probe> {
  const args = ['-v', 'error', '-count_frames', '-show_format', '-show_streams', '-of', 'json', path];
  return JSON.parse((await run('ffprobe', args)).stdout) as Probe;
}

const numbers = async (media: Buffer | string) => (await readNumbers(media)).map(({ frame }) => frame);
const range = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index);

const MATRIX: readonly NumberedRecording[] = [
  { video: 'H264', audio: 'AAC', frames: FRAMES, gop: 50 },
  { video: 'H265', audio: 'OPUS', frames: FRAMES, gop: 50 },
  { video: 'AV1', frames: FRAMES, gop: 50 },
];

for (const options of MATRIX) {
  const name = [options.video, options.audio].filter(Boolean).join('-');
  const recording = numberedRecording(join(folder, name), options, MS);

  test.serial(`ffmpeg shows exactly the frames of a clip of ${name}`, async (t) => {
    const file = await recording;
    for (const [first, count] of [
      [0, 100],
      [50, 50],
      [73, 1],
      [74, 101],
      [149, 151],
    ] as const) {
      const span = { start: MS + (first * 1000) / RATE, duration: (count * 1000) / RATE };
      const clip = await Mp4Clip.open([file], span);
      const path = join(folder, `${name}-${first}.mp4`);
      await writeFile(path, await collect(clip.read(0, clip.size)));
      const shown = await numbers(path);
      // its decoders of AV1 put out what is to be hidden, with times before 0
      t.deepEqual(options.video === 'AV1' ? shown.slice(-count) : shown, range(first, count));
      const { format, streams } = await probe(path);
      t.true(Math.abs(Number(format.duration) - count / RATE) < 0.001, `${format.duration} s of ${count / RATE}`);
      for (const { duration, start_time: start } of streams) {
        t.true(Math.abs(Number(start)) < 0.001, `begins at ${start}`);
        // audio ends with its packets
        t.true(Math.abs(Number(duration) - count / RATE) < 0.06, `${duration} s of ${count / RATE}`);
      }
    }
  });

  test.serial(`ffmpeg shows the frames of a fragmented clip of ${name}`, async (t) => {
    const file = await recording;
    for (const [first, count] of [
      [0, 100],
      [50, 50],
      [74, 101],
    ] as const) {
      const span = { start: MS + (first * 1000) / RATE, duration: (count * 1000) / RATE };
      const path = join(folder, `${name}-${first}.fmp4.mp4`);
      await writeFile(path, await collect((await openFmp4Clip([file], span)).pieces));
      // of fragments it takes edit lists for times alone: what is to be hidden is before 0
      const shown = await numbers(path);
      const begin = shown.indexOf(first);
      t.is(shown[0], 50 * Math.floor(first / 50));
      t.deepEqual(shown.slice(begin, begin + count), range(first, count));
      const { start_time: start } = (await probe(path)).streams.find(({ codec_type: type }) => type === 'video') ?? {};
      t.true(Math.abs(Number(start) + begin / RATE) < 0.001, `begins at ${start}`);
    }
  });

  test.serial(`ffmpeg plays the segments of a recording of ${name} in a row`, async (t) => {
    const { recording: own } = await recording;
    const segments = segmentsOf(own, 4);
    t.deepEqual(
      segments.map(({ duration }) => Math.round(duration * RATE)),
      [100, 100, 100],
    );
    const lines = ['#EXTM3U', '#EXT-X-VERSION:7', '#EXT-X-TARGETDURATION:4', '#EXT-X-PLAYLIST-TYPE:VOD'];
    await writeFile(join(folder, `${name}-init.mp4`), initOf(own));
    lines.push(`#EXT-X-MAP:URI="${name}-init.mp4"`);
    for (const [index, segment] of segments.entries()) {
      const path = `${name}-${index}.m4s`;
      await writeFile(join(folder, path), await collect(readSegment(own, segment, index * 100 + 1)));
      lines.push(`#EXTINF:${segment.duration.toFixed(3)},`, path);
    }
    lines.push('#EXT-X-ENDLIST');
    const list = join(folder, `${name}.m3u8`);
    await writeFile(list, `${lines.join('\n')}\n`);
    t.deepEqual(await numbers(list), range(0, FRAMES));
    const { streams } = await probe(list);
    const audio = streams.find(({ codec_type: type }) => type === 'audio');
    if (options.audio !== undefined) t.true(Number(audio?.nb_read_frames) > 500);
  });
}

/** Texts of subtitles as GStreamer reads them, each with its times in milliseconds. */
async function textsOf(path: string): Promise<(readonly [text: string, from: number, to: number])[]> {
  const chain = ['filesrc', `location=${path}`, '!', 'qtdemux', 'name=all', 'all.subtitle_0', '!', 'filesink'];
  const out = `${path}.vtt`;
  await run('gst-launch-1.0', ['-q', ...chain, `location=${out}`]);
  const time = (text: string) => Date.parse(`1970-01-01T${text}Z`);
  const texts: [text: string, from: number, to: number][] = [];
  for (const [, from = '', to = '', text = ''] of (await readFile(out, 'utf8')).matchAll(/(\S+) --> (\S+)\n(.*)/g)) {
    const before = texts.at(-1);
    if (before?.[0] === text && before[2] === time(from)) before[2] = time(to);
    else texts.push([text, time(from), time(to)]);
  }
  return texts;
}

for (const format of ['mp4', 'fmp4']) {
  test.serial(`GStreamer reads the subtitles of a clip of two recordings as ${format}, at their times`, async (t) => {
    const subtitles = subtitleTrack();
    const media = codedPackets({ video: { codec: 'H264', gop: 50 }, seconds: 6 });
    const [first] = media;
    const begin = (first?.pts ?? 0) / (first?.track.timebase.den ?? 1);
    const record = (startTime: number, texts: readonly (readonly [from: number, to: number, text: string])[]) => {
      const cues = texts.map(([from, to, text]) => {
        return { ...cuePacket(subtitles, (begin + from) * 1000, text), duration: (to - from) * 1000 };
      });
      return clipFile([...tracksOf(media), subtitles], interleaved(media, cues), startTime);
    };
    const files = [
      await record(MS, [
        [0.5, 1, 'before'],
        [2.4, 5, 'one'],
      ]),
      await record(MS + 6000, [
        [1, 2, 'two'],
        [2.5, 5, 'three'],
      ]),
    ];
    for (const [at, end] of [
      [3000, 5],
      [3200, 6],
    ] as const) {
      const span = { start: MS + at, duration: end * 1000 };
      const clip = format === 'mp4' ? await Mp4Clip.open(files, span) : await openFmp4Clip(files, span);
      const path = join(folder, `subtitles-${at}.${format}`);
      await writeFile(path, await collect('pieces' in clip ? clip.pieces : clip.read(0, clip.size)));
      const by = 6000 - at;
      t.deepEqual(await textsOf(path), [
        ['one', 0, 5000 - at],
        ['two', by + 1000, by + 2000],
        ...(end === 6 ? [['three', by + 2500, 6000] as const] : []),
      ]);
    }
  });
}
