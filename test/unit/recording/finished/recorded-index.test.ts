import { appendFileSync, existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import test from 'ava';
import { pino } from 'pino';
import { RecordedIndex, type Query } from '../../../../src/recording/finished/recorded-index.ts';
import { APP, NOON, openFinished } from '../../../support/recording/finished.ts';

const HOUR = 3_600_000;

const idsOf = async (index: RecordedIndex, query: Partial<Query> = {}): Promise<string[]> =>
  (await index.page(APP, { limit: 100, ...query })).recorded.map(({ id }) => id);

/** All pages of a listing. */
async function pagesOf(index: RecordedIndex, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await index.page(APP, { limit, cursor });
    pages.push(page.recorded.map(({ id }) => id));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return pages;
}

test('files are listed by their start, in pages, whatever the order in which they were finished', async (t) => {
  const { index, finish } = openFinished(t);
  t.deepEqual(await pagesOf(index, 2), [[]]);
  const times = [3 * HOUR, 0, 1, HOUR, 5 * HOUR, 2, 48 * HOUR];
  const ids = await Promise.all(times.map((time) => finish(NOON + time)));
  const sorted = ids.toSorted();
  t.deepEqual(
    sorted.map((id) => id.slice(0, 18)),
    times
      .toSorted((one, other) => one - other)
      .map((time) => new Date(NOON + time).toISOString().replaceAll(/[-:.Z]/g, '')),
  );
  for (const limit of [1, 2, 3, 7, 8]) {
    const pages = await pagesOf(index, limit);
    t.deepEqual(pages.flat(), sorted);
    t.is(pages.length, Math.ceil(7 / limit));
  }
  t.deepEqual(await idsOf(index, { cursor: sorted[5] }), [sorted[6]]);
});

test('a listing has what was recorded of a stream, by a task, and in a span', async (t) => {
  const { index, finish } = openFinished(t);
  const long = await finish(NOON, { finishTime: NOON + 3 * HOUR, stream: 'other' });
  const short = await finish(NOON + HOUR, { id: 'second' });
  const late = await finish(NOON + 4 * HOUR);
  t.deepEqual(await idsOf(index, { stream: 'other' }), [long]);
  t.deepEqual(await idsOf(index, { recordId: 'second' }), [short]);
  t.deepEqual(await idsOf(index, { start: NOON + 2 * HOUR }), [long, late]);
  t.deepEqual(await idsOf(index, { start: NOON + 3 * HOUR }), [late]);
  t.deepEqual(await idsOf(index, { start: NOON + HOUR, end: NOON + HOUR + 1 }), [long, short]);
  t.deepEqual(await idsOf(index, { end: NOON }), []);
  t.deepEqual(await idsOf(index, { end: NOON + 1 }), [long]);
  t.deepEqual(await idsOf(index, { start: 1e18 }), []);
  t.deepEqual((await index.page({ vhost: 'v', app: 'b' }, { limit: 1 })).recorded, []);
});

test('a listing of a stream, or a task, does not parse what others have recorded', async (t) => {
  const { index, folder, finish, log } = openFinished(t);
  const [name, task] = ['a "b"\\ü \u2028', 'task "1"'];
  const id = await finish(NOON, { stream: name, id: task, metadata: '"stream":"other","id":"other"' });
  const other = await finish(NOON + 1, { stream: 'other', metadata: JSON.stringify({ stream: name, id: task }) });
  const path = join(folder, 'recorded/v#a/20260305T12.index');
  appendFileSync(path, `${other.replace(/.$/, 'f')} {"stream":"third","id":"third"\n`);
  t.deepEqual(await idsOf(index, { stream: name }), [id]);
  t.deepEqual(await idsOf(index, { recordId: task }), [id]);
  t.deepEqual(await idsOf(index, { stream: name, recordId: task }), [id]);
  t.deepEqual(await idsOf(index, { stream: 'other' }), [other]);
  t.is(log(), '');
  t.deepEqual(await idsOf(index, { stream: 'third' }), []);
  t.regex(log(), /"lines":1/);
});

test('an entry has the facts of its file', async (t) => {
  const { root, index, finish } = openFinished(t);
  const tracks = [{ type: 'video', codec: 'H264', width: 640, height: 360 }];
  const delivery = { announced: true, uploaded: true };
  const id = await finish(NOON, {
    pathBelow: 'x/y.mp4',
    filePath: join(root, 'x/y.mp4'),
    tracks,
    delivery,
    metadata: 'ü',
  });
  const entry = await index.find(APP, id);
  t.like(entry, {
    ...{ vhost: 'v', app: 'a', stream: 's', id: 'task', root, path: 'x/y.mp4', infoPath: 'info.xml', size: 5 },
    ...{ container: 'MP4', tracks, upload: { state: 'waiting' }, isLocal: true, metadata: 'ü', recordTime: 1000 },
  });
  t.is(await index.find(APP, id.replace(/.$/, 'f')), undefined);
  t.is(await index.find({ vhost: 'v', app: 'b' }, id), undefined);
});

test('the end of an upload replaces the entry, which is listed once', async (t) => {
  const { index, finish } = openFinished(t);
  const [first, second] = [await finish(NOON, { delivery: { announced: false, uploaded: true } }), await finish(NOON)];
  const upload = { state: 'uploaded', bucket: 'b', key: 'k' } as const;
  await index.note(APP, first, upload, false);
  await index.note(APP, first, upload, false);
  await index.note(APP, first.replace(/.$/, 'f'), upload, false);
  t.deepEqual(await idsOf(index), [first, second]);
  t.like(await index.find(APP, first), { upload, isLocal: false });
  t.deepEqual(await pagesOf(index, 1), [[first], [second]]);
});

test('a file that is added again is listed once', async (t) => {
  const { index, root, finish } = openFinished(t);
  const temporary = join(root, `tmp_${'a'.repeat(32)}`);
  const ids = [await finish(NOON, { temporary }), await finish(NOON, { temporary }), await finish(NOON)];
  t.deepEqual(await idsOf(index), [ids[2], ids[0]] as string[]);
  t.deepEqual((await pagesOf(index, 1)).flat(), [ids[2], ids[0]] as string[]);
  await index.remove(APP, [ids[0] as string]);
  t.deepEqual(await idsOf(index), [ids[2]] as string[]);
});

test('removed files are gone, and with the last one of an hour its index file', async (t) => {
  const { index, folder, finish } = openFinished(t);
  const [one, two, later] = [await finish(NOON), await finish(NOON + 1), await finish(NOON + HOUR)];
  await Promise.all([index.remove(APP, [one]), index.remove(APP, [later]), index.remove(APP, [one])]);
  t.deepEqual(await idsOf(index), [two]);
  t.is(await index.find(APP, one), undefined);
  t.deepEqual(readdirSync(join(folder, 'recorded/v#a')), ['20260305T12.index', 'longest']);
  await index.remove(APP, [two]);
  await index.remove(APP, [two]);
  t.deepEqual(readdirSync(join(folder, 'recorded/v#a')), ['longest']);
});

test('a file that a crash cut anywhere loses its last entry alone, and takes further ones', async (t) => {
  const node = openFinished(t);
  const { index, folder, finish } = node;
  const ids = [await finish(NOON), await finish(NOON + 1), await finish(NOON + 2)];
  const path = join(folder, 'recorded/v#a/20260305T12.index');
  const whole = readFileSync(path);
  const lastAt = whole.lastIndexOf('\n', whole.length - 2) + 1;
  for (let cut = whole.length - 1; cut >= lastAt; cut -= 1 + (cut % 7)) {
    writeFileSync(path, whole.subarray(0, cut));
    t.deepEqual(await idsOf(index), ids.slice(0, 2));
    const added = await finish(NOON + 3);
    const listed = await idsOf(index);
    // all that lacks of the entry may be the end of its line
    t.deepEqual(
      listed.filter((id) => id !== ids[2]),
      [...ids.slice(0, 2), added],
    );
    await index.remove(APP, [added]);
  }
  truncateSync(path, 0);
  t.deepEqual(await idsOf(index), []);
});

test('foreign and damaged text is passed over, and logged once', async (t) => {
  const { index, folder, log, finish } = openFinished(t);
  const ids = [await finish(NOON)];
  const path = join(folder, 'recorded/v#a/20260305T12.index');
  const stranger = `20260305T120000000-${'f'.repeat(32)}`;
  for (let round = 0; round < 20; round++) {
    appendFileSync(path, randomBytes(1 + round * 97));
    ids.push(await finish(NOON + round + 1));
  }
  appendFileSync(path, `${stranger} {}\n${stranger} {"id":\n${stranger}\n\n#\n${'x'.repeat(300_000)}\n`);
  ids.push(await finish(NOON + 30));
  appendFileSync(path, 'y'.repeat(200_000));
  ids.push(await finish(NOON + 31));
  t.deepEqual(await idsOf(index), ids);
  t.deepEqual((await pagesOf(index, 5)).flat(), ids);
  t.is(await index.find(APP, stranger), undefined);
  t.is(log().match(/that cannot be read/g)?.length, 1);
  await index.remove(APP, [ids[3] as string]);
  t.deepEqual(
    await idsOf(index),
    ids.filter((_, at) => at !== 3),
  );
});

test('a page ends early rather than read without end, and the next one goes on there', async (t) => {
  const { index, folder, finish } = openFinished(t);
  const [first, last] = [await finish(NOON), await finish(NOON + HOUR)];
  appendFileSync(join(folder, 'recorded/v#a/20260305T12.index'), '#\n'.repeat(50_000));
  t.deepEqual(await pagesOf(index, 10), [[first], [last]]);
});

test('spans are found where the longest file is not known any more', async (t) => {
  const { index, folder, finish } = openFinished(t);
  const long = await finish(NOON, { finishTime: NOON + 30 * HOUR });
  const longest = join(folder, 'recorded/v#a/longest');
  t.is(readFileSync(longest, 'utf8'), String(30 * HOUR));
  writeFileSync(longest, 'damaged');
  t.deepEqual(await idsOf(index, { start: NOON + 29 * HOUR }), [long]);
  const short = await finish(NOON + 29 * HOUR);
  t.deepEqual(await idsOf(index, { start: NOON + 29 * HOUR }), [long, short]);
});

test('a file that is gone when it is to be added is not listed', async (t) => {
  const { index, folder } = openFinished(t);
  const gone = { vhost: 'v', app: 'a', filePath: join(folder, 'none') };
  await index.add(gone as unknown as Parameters<RecordedIndex['add']>[0]);
  t.false(existsSync(join(folder, 'recorded')));
});

test('the total is that of the files that are here, measured once', async (t) => {
  const { index, root, folder, finish } = openFinished(t);
  const delivery = { announced: false, uploaded: true };
  const [first, second] = [await finish(NOON, { delivery }), await finish(NOON + HOUR)];
  const [total, again] = await Promise.all([index.total(APP), index.total(APP), finish(NOON + 2 * HOUR)]);
  t.is(total, again);
  t.is(await index.total(APP), 15);
  await index.note(APP, first, { state: 'uploaded' }, false);
  t.is(await index.total(APP), 10);
  await index.remove(APP, [first, second, `${first.slice(0, -1)}f`]);
  t.is(await index.total(APP), 5);
  const other = openFinished(t);
  t.is(await other.index.total(APP), 0);
  t.is(await new RecordedIndex({ folder: join(folder, 'recorded'), log: pino({ level: 'silent' }) }).total(APP), 5);
  t.true(existsSync(root));
});

test('names of applications cannot lead to other folders', async (t) => {
  const { index, folder, finish } = openFinished(t);
  await finish(NOON, { vhost: '..', app: '../x' });
  t.deepEqual(readdirSync(join(folder, 'recorded')), ['..#..%2Fx']);
  t.is((await index.page({ vhost: '..', app: '../x' }, { limit: 1 })).recorded.length, 1);
});
