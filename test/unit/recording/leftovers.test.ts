import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { appendInfo } from '../../../src/recording/info-file.ts';
import { Journal, type FinishedFile, type JournalEntry } from '../../../src/recording/journal.ts';
import { finishLeftovers } from '../../../src/recording/leftovers.ts';
import { entriesOf, infoOf } from '../../support/recording/info.ts';
import { until } from '../../support/time/until.ts';

const MEDIA = Buffer.alloc(3 * 188, 0x47);
const FINISHED = { recordBytes: MEDIA.length, recordTime: 700, lastSequence: true, finishTime: Date.UTC(2026, 0, 2) };

/** A node that was killed while it wrote or finished a file, and what its next start makes of that. */
function scene(t: ExecutionContext) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-leftovers-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const root = join(folder, 'root');
  mkdirSync(root);
  const temporary = join(root, `tmp_${'0'.repeat(32)}`);
  writeFileSync(temporary, MEDIA);
  let lines = '';
  const log = pino({}, { write: (line) => void (lines += line) });
  const delivered: FinishedFile[] = [];
  let refusal: Error | undefined;
  const deliver = async (file: FinishedFile): Promise<void> => {
    if (refusal !== undefined) throw refusal;
    delivered.push(file);
  };
  const journal = new Journal({ folder: join(folder, 'journal'), log, deliver });
  t.teardown(() => journal.close());
  const { filePath: _, recordBytes: __, recordTime: ___, lastSequence: ____, finishTime: _____, ...names } = infoOf(3);
  const entry: JournalEntry = {
    ...{ ...names, temporary, root, source: 's', file: 'x/${Sequence}_${EndTime:YYYY}.ts', info: 'i.xml' },
    ...{ startTime: Date.now(), delivery: { announced: true, uploaded: false } },
  };
  return {
    root,
    entry,
    journal,
    delivered,
    finished: { ...FINISHED, inode: statSync(temporary).ino },
    log: () => lines,
    refuse: (error: Error | undefined) => (refusal = error),
    start: async (signal?: AbortSignal) => finishLeftovers(await journal.list(), journal, log, signal),
    files: () => readdirSync(root, { recursive: true }).sort(),
    infos: () =>
      entriesOf(readFileSync(join(root, 'i.xml'), 'utf8')).map(({ filePath, recordTime }) => [filePath, recordTime]),
  };
}

test('a file that was still written to is finished and delivered', async (t) => {
  const { entry, journal, start, delivered, files } = scene(t);
  // a frame that begins is whole when the next one has begun
  writeFileSync(entry.temporary, Buffer.concat([MEDIA, MEDIA.subarray(0, 188), Buffer.alloc(100)]));
  await journal.put(entry);
  await start();
  const [file] = delivered;
  t.like(file, { recordBytes: MEDIA.length, sequence: 3, lastSequence: false, delivery: entry.delivery });
  t.is(file?.filePath, join(entry.root, file?.pathBelow ?? ''));
  t.deepEqual(files(), ['i.xml', 'x', file?.pathBelow]);
  t.deepEqual(await journal.list(), []);
});

const CRASHES: readonly (readonly [name: string, crash: (from: string, to: string) => void])[] = [
  ['before it had its name', () => undefined],
  ['when it had both names', (from, to) => linkSync(from, to)],
  ['when it had its name', (from, to) => renameSync(from, to)],
];
for (const [name, crash] of CRASHES) {
  for (const isListed of [false, true]) {
    if (isListed && name === 'before it had its name') continue;
    test(`a crash ${name}${isListed ? ' and was in the info file' : ''} loses nothing that was known`, async (t) => {
      const { entry, finished, journal, start, delivered, files, infos, root } = scene(t);
      await journal.put({ ...entry, finished });
      mkdirSync(join(root, 'x'));
      // another file had the name that it was to get
      writeFileSync(join(root, 'x/3_2026.ts'), 'other');
      const path = join(root, 'x/3_2026_1.ts');
      crash(entry.temporary, path);
      if (isListed) await appendInfo(join(root, 'i.xml'), { ...entry, ...FINISHED, filePath: path });
      await start();
      t.deepEqual(files(), ['i.xml', 'x', 'x/3_2026.ts', 'x/3_2026_1.ts']);
      t.deepEqual(infos(), [[path, '700']]);
      t.like(delivered, [{ filePath: path, pathBelow: 'x/3_2026_1.ts', ...FINISHED }]);
      await start();
      t.is(delivered.length, 1);
    });
  }
}

for (const crash of ['before', 'with both names', 'after'] as const) {
  test(`subtitles of a file that was finished are named beside it after a crash: ${crash}`, async (t) => {
    const { entry, finished, journal, start, delivered, files, root } = scene(t);
    mkdirSync(join(root, 'x'));
    const subtitles = [0, 1].map((index) => {
      const path = `${entry.temporary}.${index}.vtt`;
      writeFileSync(path, 'WEBVTT');
      return { index, inode: statSync(path).ino };
    });
    const labels = [{ label: 'English', language: 'en' }, { label: 'French' }];
    await journal.put({ ...entry, labels, finished: { ...finished, subtitles } });
    const name = join(root, 'x/3_2026.English.en.vtt');
    if (crash === 'with both names') linkSync(`${entry.temporary}.0.vtt`, name);
    if (crash === 'after') renameSync(`${entry.temporary}.0.vtt`, name);
    renameSync(entry.temporary, join(root, 'x/3_2026.ts'));
    await start();
    const names = ['3_2026.English.en.vtt', '3_2026.French.vtt'];
    t.deepEqual(files(), ['i.xml', 'x', ...names.map((one) => `x/${one}`), 'x/3_2026.ts'].sort());
    t.deepEqual(
      delivered[0]?.subtitles?.map(({ name: one }) => one),
      names,
    );
  });
}

test('subtitles of a file that was still written to are finished with it, and dropped with one without media', async (t) => {
  const { entry, journal, start, delivered, files, root } = scene(t);
  const cue = '00:00:00.000 --> 00:00:01.000\nx\n\n';
  const write = () => {
    writeFileSync(`${entry.temporary}.0.vtt`, `WEBVTT\n\n${cue}00:00:02`);
    writeFileSync(`${entry.temporary}.1.vtt`, 'WEBVTT\n\n00');
  };
  const labels = [{ label: 'English' }, { label: 'French' }];
  write();
  await journal.put({ ...entry, labels });
  await start();
  const [file] = delivered;
  const path = join(root, 'x', file?.subtitles?.[0]?.name ?? '');
  t.is(readFileSync(path, 'utf8'), `WEBVTT\n\n${cue}`);
  t.is(file?.subtitles?.length, 1);
  const before = files();
  for (const media of ['', undefined]) {
    write();
    if (media !== undefined) writeFileSync(entry.temporary, media);
    await journal.put({ ...entry, labels });
    await start();
    t.deepEqual(files(), before);
  }
});

test('a recording that cannot be handed over is handed over by the next start, once in the info file', async (t) => {
  const { entry, journal, start, delivered, refuse, log, infos } = scene(t);
  await journal.put(entry);
  refuse(new Error('no space left'));
  await start();
  t.deepEqual(delivered, []);
  t.regex(log(), /"event":"delivery.failed".*no space left/);
  journal.close();
  refuse(undefined);
  await start();
  t.is(delivered.length, 1);
  t.is(infos().length, 1);
});

test('a recording that cannot be handed over is handed over later by the same run', async (t) => {
  const { entry, journal, start, delivered, refuse, log, infos } = scene(t);
  await journal.put(entry);
  refuse(new Error('no space left'));
  await start();
  t.is((await journal.list()).length, 1);
  refuse(undefined);
  await until('it is handed over', async () => (await journal.list()).length === 0);
  t.is(delivered.length, 1);
  t.is(infos().length, 1);
  t.is(log().split('delivery.failed').length, 2, 'logged once');
});

test('a file that has gone meanwhile is forgotten, and one that cannot be finished is tried again', async (t) => {
  const { entry, finished, journal, start, delivered, log, root } = scene(t);
  writeFileSync(join(root, 'x'), 'no folder');
  await journal.put(entry);
  await start();
  t.regex(log(), /could not be finished/);
  t.is((await journal.list()).length, 1);
  rmSync(entry.temporary);
  rmSync(join(root, 'x'));
  await start();
  t.deepEqual(await journal.list(), []);
  await journal.put({ ...entry, finished });
  await start();
  t.deepEqual([await journal.list(), delivered], [[], []]);
});

for (const isFinished of [false, true]) {
  test(`a file waits for its disk${isFinished ? ', also when it had its name' : ''}`, async (t) => {
    const { entry, finished, journal, start, delivered, log, root } = scene(t);
    const known = { ...entry, file: 'a.ts', folder: statSync(root).ino };
    await journal.put(isFinished ? { ...known, finished } : known);
    if (isFinished) renameSync(entry.temporary, join(root, 'a.ts'));
    renameSync(root, `${root}-elsewhere`);
    await start();
    // the folder that a disk is mounted to
    mkdirSync(root);
    await start();
    t.is((await journal.list()).length, 1);
    t.regex(log(), /could not be finished/);
    rmSync(root, { recursive: true });
    renameSync(`${root}-elsewhere`, root);
    await start();
    t.like(delivered, [{ filePath: join(root, 'a.ts') }]);
    t.deepEqual(await journal.list(), []);
    await journal.put({ ...known, startTime: Date.now() - 8 * 24 * 3600_000, folder: 1 });
    await start();
    t.deepEqual(await journal.list(), [], 'not for ever');
  });
}

test('a node that stops leaves what it has not finished to its next start', async (t) => {
  const { entry, journal, start, delivered } = scene(t);
  await journal.put(entry);
  await start(AbortSignal.abort());
  t.is((await journal.list()).length, 1);
  await start();
  t.is(delivered.length, 1);
});

test('an entry that is damaged is logged, and the others are finished', async (t) => {
  const { entry, journal, start, delivered, log } = scene(t);
  await journal.put(entry);
  writeFileSync(join(entry.root, '../journal/a.json'), '{"tempor');
  await start();
  t.is(delivered.length, 1);
  t.regex(log(), /journal cannot be read/);
});
