import { copyFile, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { MediaFiles } from '../../../../src/channels/scheduled/media-files.ts';
import { ffmpeg, mediaFolder, processesReading, writePattern } from '../../../support/media/media-files.ts';
import { writeScript } from '../../../support/programs/script.ts';
import { until } from '../../../support/time/until.ts';

const { folder, remove } = await mediaFolder();
test.after.always(remove);
const path = (name: string): string => join(folder, name);

test.before(async () => {
  await writePattern(path('a.mp4'), { seconds: 3 });
  // without an index or times in it, its length can only be estimated
  await ffmpeg('-i', path('a.mp4'), '-vn', '-c:a', 'copy', '-f', 'adts', path('raw.aac'));
});

/** An ffmpeg whose runs of some kinds go on only when they are told to. */
function slowFfmpeg(
  name: string,
  holds: 'measure' | 'all-but',
): { program: string; log: () => Promise<string[]>; go: () => Promise<void> } {
  const log = path(`${name}.log`);
  const gate = path(`${name}.gate`);
  const isHeld = holds === 'measure' ? '*" -progress "*' : '*" -t 0 "*';
  const program = writeScript(
    path(name),
    [
      `case " $* " in ${isHeld}) echo held >> ${log}; while [ ! -e ${gate} ]; do sleep 0.05; done;; *) echo run >> ${log};; esac`,
      'exec ffmpeg "$@"',
    ].join('\n'),
  );
  return {
    program,
    log: async () => (await readFile(log, 'utf8').catch(() => '')).split('\n').filter((line) => line !== ''),
    go: () => copyFile(path('a.mp4'), gate),
  };
}

test('a file is open before its length is measured, which comes later', async (t) => {
  const { program, log, go } = slowFfmpeg('slow-measure', 'measure');
  const files = new MediaFiles(folder, program);
  const changed: string[] = [];
  files.onLength((url) => changed.push(url));
  const { handle, info } = await files.open('file://raw.aac');
  await handle.close();
  t.is(info.audio.length, 1);
  t.is(files.lengthOf('file://raw.aac'), undefined);
  await until('it is being measured', async () => (await log()).includes('held'));
  const again = await files.open('file://raw.aac');
  await again.handle.close();
  await go();
  await until('the length is known', () => changed.length > 0);
  t.deepEqual(changed, ['file://raw.aac']);
  t.true(Math.abs((files.lengthOf('file://raw.aac') ?? 0) - 3000) < 150);
  t.is((await log()).filter((line) => line === 'held').length, 1, 'it is measured once');
  await until('nothing is left', async () => (await processesReading(folder)).length === 0);
});

test('measuring a media file waits for its length', async (t) => {
  const files = new MediaFiles(folder, 'ffmpeg');
  await files.measure(['file://raw.aac', 'file://a.mp4']);
  t.true(Math.abs((files.lengthOf('file://raw.aac') ?? 0) - 3000) < 150);
  t.true(Math.abs((files.lengthOf('file://a.mp4') ?? 0) - 3000) < 150);
});

test('an item about to play does not wait for those that are looked at beforehand', async (t) => {
  // what is held looks at a file: more of them than there are places
  const names = Array.from({ length: 12 }, (_, index) => `ahead${index}.mp4`);
  await Promise.all(names.map((name) => copyFile(path('a.mp4'), path(name))));
  const { program, log, go } = slowFfmpeg('slow-probe', 'all-but');
  const files = new MediaFiles(folder, program);
  const measured = files.measure(names.map((name) => `file://${name}`));
  await until('they are looked at', async () => (await log()).length > 0);
  const before = (await log()).length;
  const opened = files.open('file://a.mp4');
  await until('the item is looked at as well', async () => (await log()).length > before);
  await go();
  await (await opened).handle.close();
  await measured;
  t.true(names.every((name) => files.lengthOf(`file://${name}`) !== undefined));
});

test('looking ahead in media files ends with the channel that asked for it', async (t) => {
  const { program, log, go } = slowFfmpeg('abandoned', 'all-but');
  const files = new MediaFiles(folder, program);
  const names = Array.from({ length: 30 }, (_, index) => `more${index}.mp4`);
  await Promise.all(names.map((name) => copyFile(path('a.mp4'), path(name))));
  const stop = new AbortController();
  const measured = files.measure(
    names.map((name) => `file://${name}`),
    undefined,
    stop.signal,
  );
  await until('some are looked at', async () => (await log()).length > 0);
  stop.abort();
  await go();
  await measured;
  t.true(names.filter((name) => files.lengthOf(`file://${name}`) !== undefined).length < 10);
});

test('a file that vanishes keeps its length, and one that plays to its end reveals it', async (t) => {
  const files = new MediaFiles(folder, 'ffmpeg');
  await copyFile(path('a.mp4'), path('gone.mp4'));
  await files.measure(['file://gone.mp4']);
  const length = files.lengthOf('file://gone.mp4');
  t.true(length !== undefined);
  await rm(path('gone.mp4'));
  await t.throwsAsync(files.open('file://gone.mp4'), { message: 'the file does not exist' });
  const unreadable: string[] = [];
  await files.measure(['file://gone.mp4'], (url) => unreadable.push(url));
  t.deepEqual(unreadable, ['file://gone.mp4']);
  t.is(files.lengthOf('file://gone.mp4'), length);

  const unmeasured = new MediaFiles(folder, slowFfmpeg('never-measures', 'measure').program);
  const { handle } = await unmeasured.open('file://raw.aac');
  await handle.close();
  unmeasured.played('file://raw.aac', 2990);
  t.is(unmeasured.lengthOf('file://raw.aac'), 2990);
  const again = await unmeasured.open('file://raw.aac');
  await again.handle.close();
  t.is(unmeasured.lengthOf('file://raw.aac'), 2990);
  await copyFile(path('a.mp4'), path('never-measures.gate'));
  await until('nothing is left', async () => (await processesReading(folder)).length === 0);
});
