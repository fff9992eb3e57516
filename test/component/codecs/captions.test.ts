import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { captionData } from '../../../src/codecs/captions/cc-data.ts';
import { CaptionDecoder } from '../../../src/codecs/captions/caption-decoder.ts';
import { joinNals, splitAnnexB } from '../../../src/codecs/nal.ts';
import { CAPTION_RATE, captionedVideo } from '../../support/media/captioned-video.ts';

const folder = await mkdtemp(join(tmpdir(), 'kiln-captions-'));
test.after.always(() => rm(folder, { recursive: true, force: true }));

interface Shown {
  readonly from: number;
  readonly text: string;
}

/** Texts that ffmpeg reads of CC1, and when they are shown, in seconds. */
async function judged(path: string): Promise<Shown[]> {
  const args = [
    '-nostdin',
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    `movie=${path}[out0+subcc]`,
    '-map',
    '0:s',
    '-f',
    'webvtt',
    '-',
  ];
  const { stdout } = await promisify(execFile)('ffmpeg', args);
  return [...stdout.matchAll(/^(?:(\d+):)?(\d+):([\d.]+) --> .*\n(.*)/gm)].map(
    ([, hours = '0', minutes, seconds, text = '']) => ({
      from: Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds),
      text: text.trim(),
    }),
  );
}

/** Texts as Kiln reads them. */
function read(codec: 'H264' | 'H265', stream: Buffer): Shown[] {
  const decoder = new CaptionDecoder(['SERVICE1']);
  const shown: Shown[] = [];
  let before = '';
  let frame = 0;
  for (const nal of splitAnnexB(stream, 1e6)) {
    // a NAL unit with captions comes before each frame
    const data = captionData(codec, joinNals([nal]));
    if (data === undefined) continue;
    decoder.push(data);
    const [{ text } = { text: '' }] = decoder.texts('CC1');
    if (text !== before && text !== '') shown.push({ from: frame / CAPTION_RATE, text });
    before = text;
    frame++;
  }
  return shown;
}

for (const codec of ['H264', 'H265'] as const) {
  test(`captions in ${codec} read as ffmpeg reads them, at the same time`, async (t) => {
    const stream = await captionedVideo(codec, 14);
    const path = join(folder, `captions.${codec}`);
    await writeFile(path, stream);
    const format = codec === 'H264' ? 'h264' : 'hevc';
    const timed = `${path}.mkv`;
    const input = ['-framerate', String(CAPTION_RATE), '-f', format, '-i', path];
    await promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...input, '-c', 'copy', timed]);
    const expected = await judged(timed);
    const found = read(codec, stream);
    t.deepEqual(
      found.map(({ text }) => text),
      ['LINE 0', 'LINE 1', 'LINE 2', 'LINE 3'],
    );
    t.deepEqual(
      expected.map(({ text }) => text),
      found.map(({ text }) => text),
    );
    for (const [index, { from }] of found.entries())
      t.true(
        Math.abs(from - (expected[index]?.from ?? 0)) <= 3 / CAPTION_RATE,
        `${index}: ${from} ${expected[index]?.from}`,
      );
  });
}
