import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { ApplicationConfig } from '../../../../src/config/model.ts';
import type { Keeper } from '../../../../src/recording/finished/entry.ts';
import { DerivedFiles } from '../../../../src/recording/finished/derived-files.ts';
import { Recordings } from '../../../../src/recording/finished/recordings.ts';
import { Retention } from '../../../../src/recording/finished/retention.ts';
import { APP, openFinished } from '../../../support/recording/finished.ts';

const MINUTE = 60_000;
const UPLOADED = { announced: false, uploaded: true };

type Settings = Partial<NonNullable<ApplicationConfig['publishers']['file']>>;

function open(t: ExecutionContext, settings: () => Settings | undefined, keeper: Keeper = 'file') {
  const node = openFinished(t);
  const dumping = new Set<string>();
  const uploading = new Set<string>();
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { level: 'info' },
    { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const { index } = node;
  const recordings = new Recordings({
    index,
    derived: new DerivedFiles(join(node.folder, 'playback')),
    journal: { has: async () => false },
    isDumping: (folder) => dumping.has(folder),
    deliveries: { isUploading: async (temporary) => uploading.has(temporary.slice('tmp_'.length)) },
    log,
  });
  const retention = new Retention({
    index,
    recordings,
    applications: () => {
      const given = settings();
      return given === undefined ? [] : [{ ...APP, keeper, limits: given as never }];
    },
    log,
  });
  t.teardown(() => retention.close());
  /** Records a file of five bytes and a second that began so many minutes ago. @returns its id */
  const finish = (minutes: number, more = {}) => node.finish(Date.now() - minutes * MINUTE, more);
  return {
    ...node,
    ...{ retention, finish, dumping },
    uploading: (id: string) => uploading.add(id.slice(id.indexOf('-') + 1)),
    files: () => readdirSync(node.root).filter((name) => name.endsWith('.ts')),
    events: (event: string) => lines.filter((line) => line.event === event),
  };
}

const S3 = { record: { upload: { bucket: 'b' } } } as unknown as Settings;

test('files are deleted when they are older than DeleteAfter', async (t) => {
  let settings: Settings | undefined = { deleteAfter: 600 };
  const { finish, retention, files, index, events } = open(t, () => settings);
  for (const minutes of [200, 11, 9, 0]) await finish(minutes);
  await Promise.all([retention.look(), retention.look()]);
  t.deepEqual(files(), ['2.ts', '3.ts']);
  t.is((await index.page(APP, { limit: 10 })).recorded.length, 2);
  t.deepEqual(
    events('record.deleted').map(({ reason }) => reason),
    ['age', 'age'],
  );
  settings = undefined;
  await retention.look();
  t.is(files().length, 2);
});

test('a long file counts from its end', async (t) => {
  const { finish, retention, files } = open(t, () => ({ deleteAfter: 600 }));
  await finish(100, { finishTime: Date.now() - 5 * MINUTE });
  await retention.look();
  t.is(files().length, 1);
});

test('the oldest files are deleted when all are larger than MaxTotalSize', async (t) => {
  let settings: Settings = { maxTotalSize: '12' };
  const { finish, retention, files, events } = open(t, () => settings);
  for (const minutes of [1, 300, 200, 2]) await finish(minutes);
  await retention.look();
  t.deepEqual(files(), ['0.ts', '3.ts']);
  t.deepEqual(retention.kept, [{ ...APP, keeper: 'file', bytes: 10, limit: 12 }]);
  t.deepEqual(
    events('record.deleted').map(({ reason }) => reason),
    ['space', 'space'],
  );
  t.is(events('record.space-short').length, 0);
  settings = {};
  await retention.look();
  t.deepEqual(retention.kept, []);
});

test('subtitles beside a file count for MaxTotalSize, and go with it', async (t) => {
  const { finish, retention, files, root, index } = open(t, () => ({ maxTotalSize: '19' }));
  const beside = (name: string) => {
    const path = join(root, name);
    mkdirSync(root, { recursive: true });
    writeFileSync(path, 'WEBVTT');
    return [{ label: 'English', name, inode: statSync(path).ino }];
  };
  await finish(20, { subtitles: beside('0.English.vtt') });
  await finish(10, { subtitles: beside('1.English.vtt') });
  t.is(await index.total(APP), 22);
  await retention.look();
  t.deepEqual(files(), ['1.ts']);
  t.deepEqual(
    readdirSync(root).filter((name) => name.endsWith('.vtt')),
    ['1.English.vtt'],
  );
  t.deepEqual(retention.kept, [{ ...APP, keeper: 'file', bytes: 11, limit: 19 }]);
});

test('what is not delivered stays, with Force it goes', async (t) => {
  let settings: Settings = { ...S3, deleteAfter: 600, maxTotalSize: '6' };
  const { finish, retention, files, index, uploading, events } = open(t, () => settings);
  const waiting = await finish(30, { delivery: UPLOADED });
  const failed = await finish(20, { delivery: UPLOADED });
  const uploaded = await finish(15, { delivery: UPLOADED });
  await index.note(APP, failed, { state: 'failed' }, true);
  await index.note(APP, uploaded, { state: 'uploaded', bucket: 'b', key: 'k' }, true);
  uploading(waiting);
  await retention.look();
  t.deepEqual(files(), ['0.ts', '1.ts']);
  t.is(events('record.space-short').length, 1);
  await retention.look();
  t.is(events('record.space-short').length, 1, 'once');
  settings = { ...settings, force: true };
  await retention.look();
  t.deepEqual(files(), []);
});

test('what MaxTotalSize deletes stays in the index where it is in a bucket, and goes with DeleteAfter', async (t) => {
  let settings: Settings = { ...S3, maxTotalSize: '6' };
  const { finish, retention, files, index, events } = open(t, () => settings);
  const upload = { state: 'uploaded', bucket: 'b', key: 'k', url: 'http://s3/b/k' } as const;
  const [stored = '', unknown = '', newest = ''] = [
    await finish(30, { delivery: UPLOADED }),
    await finish(20, { delivery: UPLOADED }),
    await finish(10, { delivery: UPLOADED }),
  ];
  await index.note(APP, stored, upload, true);
  // without its address it is found by nobody
  await index.note(APP, unknown, { state: 'uploaded' }, true);
  await index.note(APP, newest, upload, true);
  for (let round = 0; round < 2; round++) await retention.look();
  t.deepEqual(files(), ['2.ts']);
  const left = (await index.page(APP, { limit: 10 })).recorded;
  t.deepEqual(
    left.map(({ id, entry }) => [id, entry.isLocal, entry.upload]),
    [
      [stored, false, upload],
      [newest, true, upload],
    ],
  );
  t.is(await index.total(APP), 5);
  t.is(events('record.deleted').length, 2);
  settings = { ...S3, deleteAfter: 900 };
  await retention.look();
  t.deepEqual(
    (await index.page(APP, { limit: 10 })).recorded.map(({ id }) => id),
    [newest],
  );
});

test('a warning comes before files are deleted early', async (t) => {
  const { finish, retention, files, events } = open(t, () => ({ deleteAfter: 3600, maxTotalSize: '21' }));
  for (const minutes of [50, 40, 30]) await finish(minutes);
  await retention.look();
  t.is(events('record.space-short').length, 0);
  await finish(20);
  await retention.look();
  t.is(files().length, 4);
  t.regex(String(events('record.space-short')[0]?.msg), /before DeleteAfter/);
  await finish(10);
  await retention.look();
  t.deepEqual(files(), ['1.ts', '2.ts', '3.ts', '4.ts']);
});

test('a file that was changed stays, which is logged once, and the others go', async (t) => {
  const { finish, retention, files, root, events } = open(t, () => ({ deleteAfter: 600 }));
  await finish(30);
  await finish(20);
  writeFileSync(join(root, '0.ts'), 'by hand');
  await retention.look();
  await retention.look();
  t.deepEqual(files(), ['0.ts']);
  t.is(events('record.kept').length, 1);
  t.regex(String(events('record.kept')[0]?.reason), /its size has changed/);
});

test('more files than a page are deleted at once, over many hours', async (t) => {
  const { finish, retention, files } = open(t, () => ({ deleteAfter: 600 }));
  for (let at = 0; at < 520; at++) await finish(20 + at);
  await finish(1);
  await retention.look();
  t.is(files().length, 1);
});

test('many files that must stay do not keep others from being deleted', async (t) => {
  const { finish, retention, index, folder, files } = open(t, () => ({ ...S3, deleteAfter: 600 }));
  const id = await finish(300, { delivery: UPLOADED });
  const delivered = await finish(20);
  const path = join(folder, 'recorded/v#a', `${id.slice(0, 11)}.index`);
  const [line = ''] = readFileSync(path, 'utf8').split('\n');
  const others = Array.from({ length: 10_000 }, (_, at) => `${id.slice(0, 19)}${at.toString(16).padStart(32, '0')}`);
  appendFileSync(path, others.map((other) => `${other}${line.slice(other.length)}\n`).join(''));
  await retention.look();
  t.not(await index.find(APP, delivered), undefined);
  await retention.look();
  t.is(await index.find(APP, delivered), undefined);
  t.deepEqual(files(), ['0.ts']);
});

const minutesAgo = (minutes: number): number => Date.now() - minutes * MINUTE;

test('dumps have limits of their own, and each module its own', async (t) => {
  const files = open(t, () => ({ deleteAfter: 600, maxTotalSize: '1' }));
  await files.dump('old', minutesAgo(300));
  await files.finish(300);
  await files.retention.look();
  t.deepEqual(files.files(), []);
  t.deepEqual(readdirSync(files.dumps).sort(), ['old', 'old.xml']);

  const dumps = open(t, () => ({ deleteAfter: 600 }), 'llhls');
  await dumps.finish(300);
  await dumps.dump('old', minutesAgo(300));
  await dumps.dump('ts', minutesAgo(300), { container: 'MPEG-TS' });
  await dumps.dump('new', minutesAgo(5));
  await dumps.retention.look();
  t.is(dumps.files().length, 1);
  t.deepEqual(readdirSync(dumps.dumps).sort(), ['new', 'new.xml', 'ts', 'ts.xml']);
  t.deepEqual(
    dumps.events('record.deleted').map(({ file, reason }) => [file, reason]),
    [[join(dumps.dumps, 'old/llhls.m3u8'), 'age']],
  );
});

test('the oldest dumps are deleted when all are larger than MaxTotalSize', async (t) => {
  const { dump, finish, dumps, retention, events, index } = open(t, () => ({ maxTotalSize: '40' }), 'hls');
  await finish(1);
  const ts = { container: 'MPEG-TS' };
  for (const [name, minutes] of [
    ['b', 20],
    ['a', 30],
    ['c', 10],
  ] as const)
    await dump(name, minutesAgo(minutes), ts);
  t.is(await index.total(APP, 'hls'), 54);
  await retention.look();
  t.deepEqual(readdirSync(dumps).sort(), ['b', 'b.xml', 'c', 'c.xml']);
  t.deepEqual(retention.kept, [{ ...APP, keeper: 'hls', bytes: 36, limit: 40 }]);
  t.is(events('record.space-short').length, 0);
  t.is(await index.total(APP), 5);
});

test('a dump that is written to, or was changed, stays, which the log tells', async (t) => {
  const { dump, dumps, retention, events, dumping } = open(t, () => ({ maxTotalSize: '1' }), 'llhls');
  const { folder } = await dump('written', minutesAgo(300));
  await dump('changed', minutesAgo(200));
  dumping.add(folder);
  writeFileSync(join(dumps, 'changed/chunklist.m3u8'), 'by hand');
  await retention.look();
  await retention.look();
  t.deepEqual(readdirSync(dumps).sort(), ['changed', 'changed.xml', 'written', 'written.xml']);
  t.is(events('record.kept').length, 2);
  t.deepEqual(
    events('record.space-short').map(({ application, msg }) => [application, msg]),
    [['v/a (llhls)', 'finished HLS dumps take more than MaxTotalSize: they cannot be deleted']],
  );
  dumping.clear();
  await retention.look();
  t.deepEqual(readdirSync(dumps).sort(), ['changed', 'changed.xml']);
});
