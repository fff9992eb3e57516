import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { DiskCalls } from '../../../src/core/disk-calls.ts';
import { Disks } from '../../../src/core/disks.ts';
import { SubtitleFile } from '../../../src/recording/subtitle-file.ts';
import { besideName } from '../../../src/recording/subtitles-beside.ts';
import { wholeVtt } from '../../../src/recording/whole-vtt.ts';
import { seeded } from '../codecs/vectors.ts';

function scene(t: ExecutionContext) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-subtitles-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'a.vtt');
  let opened = 0;
  const file = new SubtitleFile({
    open: () => {
      opened++;
      return open(path, 'wx');
    },
    disk: new Disks(new DiskCalls()).open(folder),
    onFailure: (error) => t.fail(error.message),
  });
  return {
    file,
    add: (start: number, end: number, text: string) => file.add({ start, end, text, settings: '' }),
    opened: () => opened,
    text: () => readFileSync(path, 'utf8'),
  };
}

test('a WebVTT file has cues by their start, and cuts at its end those that go on', async (t) => {
  const { file, add, opened, text } = scene(t);
  file.write(5000, 5500);
  t.is(opened(), 0);
  add(7000, 8200, 'later');
  add(6000, 400 * 3_600_000, 'long');
  file.write(5000, 7001);
  // it is late: cues begin in order
  add(6500, 8000, 'late');
  add(12_000, 13_000, 'after the end');
  await file.end(5000, 10_000);
  t.is(
    text(),
    'WEBVTT\n\n00:00:01.000 --> 000:00:05.000\nlong\n\n00:00:02.000 --> 00:00:03.200\nlater\n\n' +
      '00:00:02.000 --> 00:00:03.000\nlate\n\n',
  );
});

test('a WebVTT file has a cue that comes again once, and none of too many that wait', async (t) => {
  const { file, add, text } = scene(t);
  for (const until of [1000, 3000]) {
    t.true(add(500, 1500, 'once'));
    file.write(0, until);
  }
  for (let count = 0; count < 1000; count++) t.true(add(9000, 9001 + count, 'x'));
  t.false(add(9000, 9000, 'x'));
  await file.end(0, 5000);
  t.is(text(), 'WEBVTT\n\n00:00:00.500 --> 00:00:01.500\nonce\n\n');
});

test('pieces of a text that follow each other are one cue, apart from those of others', async (t) => {
  const { file, add, text } = scene(t);
  for (let start = 1000; start < 4000; start += 300) {
    t.true(add(start, start + 300, 'piece'));
    t.true(add(start, start + 300, 'other'));
    if (start > 2000) t.true(add(start - 300, start, 'piece'));
    // the next piece comes when frames after its begin are there already
    file.write(0, start + 500);
  }
  add(4000, 4300, 'apart');
  add(4400, 4700, 'apart');
  for (let start = 10_000; start < 50_000; start += 500) {
    add(start, start + 500, 'long');
    file.write(0, start + 500);
  }
  await file.end(0, 48_000);
  const cue = (from: string, to: string, of: string) => `00:00:${from} --> 00:00:${to}\n${of}\n\n`;
  const both = cue('01.000', '04.000', 'piece') + cue('01.000', '04.000', 'other');
  const apart = cue('04.000', '04.300', 'apart') + cue('04.400', '04.700', 'apart');
  t.is(text(), `WEBVTT\n\n${both}${apart}${cue('10.000', '40.000', 'long')}${cue('40.000', '48.000', 'long')}`);
});

test('a recording without a cue has no WebVTT file', async (t) => {
  const { file, add, opened } = scene(t);
  add(3000, 4000, 'too late');
  await file.end(0, 2000);
  t.is(opened(), 0);
});

test('a WebVTT file that was interrupted is cut after its last whole cue', async (t) => {
  const cue = '00:00:00.500 --> 00:00:01.500\nline\nline\n\n';
  const whole = (text: string) => {
    const bytes = Buffer.from(text);
    return wholeVtt(async (at, count) => bytes.subarray(at, at + count), bytes.length);
  };
  const text = `WEBVTT\n\n${cue}${cue}`;
  t.is(await whole(text), text.length);
  for (let at = 0; at < text.length; at++) {
    const expected = at < 8 + cue.length ? 0 : 8 + cue.length;
    t.is(await whole(text.slice(0, at)), expected);
  }
  const random = seeded(7);
  for (let round = 0; round < 50; round++) {
    const bytes = Buffer.from(Array.from({ length: 300 }, () => Math.floor(random() * 256)));
    t.true((await wholeVtt(async (at, count) => bytes.subarray(at, at + count), 300)) <= 300);
  }
  const long = `${text}${'x'.repeat(300_000)}`;
  t.is(await whole(long), 0);
});

test('subtitles are named after their file, label and language', (t) => {
  t.is(besideName('/r/a.b/talk.mp4', { label: 'English', language: 'en' }), '/r/a.b/talk.English.en.vtt');
  t.is(besideName('/r/talk', { label: '../한국어\n?' }), '/r/talk..._한국어__.vtt');
  const long = besideName(`/r/${'ä'.repeat(125)}.ts`, { label: 'ö'.repeat(200), language: 'de' });
  t.true(Buffer.byteLength(long.slice('/r/'.length)) <= 255);
  t.regex(long, /^\/r\/ä+\.ö+\.vtt$/);
});
