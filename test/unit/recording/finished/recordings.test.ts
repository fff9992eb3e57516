import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { APP, NOON, openFinished, openRecordings } from '../../../support/recording/finished.ts';
import { entriesOf } from '../../../support/recording/info.ts';

/** Two files in a folder of their own. */
async function open(t: ExecutionContext) {
  const node = openFinished(t);
  const { root, finish } = node;
  const placed = (name: string) => ({ pathBelow: `live/${name}`, filePath: join(root, 'live', name) });
  const ids = [await finish(NOON, placed('0.ts')), await finish(NOON + 1, placed('1.ts'))] as const;
  return {
    ...node,
    ids,
    recordings: openRecordings(node.folder),
    file: join(root, 'live/0.ts'),
    info: join(root, 'info.xml'),
  };
}

test('a recording goes with its file and its entries', async (t) => {
  const { recordings, ids, file, info, root } = await open(t);
  t.true(await recordings.remove(APP, ids[0]));
  t.false(existsSync(file));
  t.deepEqual(
    entriesOf(readFileSync(info, 'utf8')).map(({ filePath }) => filePath),
    [join(root, 'live/1.ts')],
  );
  t.false(await recordings.remove(APP, ids[0]));
  t.is(await recordings.find(APP, ids[0]), undefined);
  t.true(await recordings.remove(APP, ids[1]));
  t.false(existsSync(info));
  t.deepEqual((await recordings.page(APP, { limit: 1 })).recorded, []);
});

test('subtitles go with their recording, and a file that has got their name stays', async (t) => {
  const { recordings, finish, root } = await open(t);
  const names = ['2.English.en.vtt', '2.French.vtt', '2.German.vtt'];
  const subtitles = names.map((name) => {
    const path = join(root, 'live', name);
    writeFileSync(path, 'WEBVTT');
    return { label: name, name, inode: statSync(path).ino };
  });
  const place = { pathBelow: 'live/2.ts', filePath: join(root, 'live/2.ts') };
  const id = await finish(NOON + 2, { ...place, subtitles });
  // a text was edited, one was replaced, and one is gone
  const [edited = '', replaced = '', gone = ''] = names.map((name) => join(root, 'live', name));
  appendFileSync(edited, 'more');
  writeFileSync(`${replaced}.new`, 'other');
  renameSync(`${replaced}.new`, replaced);
  unlinkSync(gone);
  t.true(await recordings.remove(APP, id));
  t.deepEqual(
    [edited, replaced, place.filePath].map((path) => existsSync(path)),
    [false, true, false],
  );
});

test('what is derived from a recording goes with its file', async (t) => {
  const { recordings, ids } = await open(t);
  const { derived } = recordings;
  for (const id of ids) await derived.write(id, [Buffer.from('x')], async () => true);
  await recordings.remove(APP, ids[0]);
  t.is(await derived.read(ids[0], 1), undefined);
  await recordings.note(APP, ids[1], { state: 'uploaded' }, true);
  t.not(await derived.read(ids[1], 1), undefined);
  await recordings.note(APP, ids[1], { state: 'uploaded' }, false);
  t.is(await derived.read(ids[1], 1), undefined);
});

test('a file that is finished is told to those who listen', async (t) => {
  const { root, recordings } = await open(t);
  const added: unknown[] = [];
  const leave = recordings.onAdded((one) => added.push(one));
  const file = { temporary: join(root, `tmp_${'f'.repeat(32)}`), root, file: 'x.ts', info: 'info.xml', id: 'task' };
  const more = { transactionId: 'T'.repeat(16), stream: 's', source: 's', sequence: 0, createdTime: NOON };
  const finished = { recordBytes: 5, recordTime: 1000, lastSequence: true, finishTime: NOON + 1000 };
  const place = { filePath: join(root, 'live/0.ts'), pathBelow: 'live/0.ts' };
  await recordings.add({ ...APP, ...file, ...more, ...finished, ...place, startTime: NOON });
  const id = `20260305T120000000-${'f'.repeat(32)}`;
  t.deepEqual(added, [{ ...APP, id, container: 'MPEG-TS' }]);
  t.not(await recordings.find(APP, id), undefined);
  leave();
});

test('a recording is removed once, whoever asks for it at the same time', async (t) => {
  const { recordings, ids } = await open(t);
  const all = await Promise.all([1, 2, 3].map(() => recordings.remove(APP, ids[0])));
  t.deepEqual(all, [true, false, false]);
});

test('a recording whose file or info file is gone can be removed', async (t) => {
  const { recordings, ids, file, info } = await open(t);
  unlinkSync(file);
  t.true(await recordings.remove(APP, ids[0]));
  unlinkSync(info);
  t.true(await recordings.remove(APP, ids[1]));
});

test('a recording that is still written or to be uploaded stays', async (t) => {
  const { folder, ids, file } = await open(t);
  const written = openRecordings(folder, { journal: { has: async () => true } });
  await t.throwsAsync(written.remove(APP, ids[0]), { message: `The recording is still written: [${ids[0]}]` });
  const uploading = openRecordings(folder, { deliveries: { isUploading: async () => true } });
  await t.throwsAsync(uploading.remove(APP, ids[0]), { message: `The recording is still to be uploaded: [${ids[0]}]` });
  t.true(existsSync(file));
});

type Opened = Awaited<ReturnType<typeof open>>;

const refusals: Readonly<Record<string, [(node: Opened) => void, RegExp]>> = {
  'was cut off': [({ file }) => writeFileSync(file, 'med'), /its size has changed from 5 to 3 bytes/],
  'has grown': [({ file }) => appendFileSync(file, 'more'), /its size has changed from 5 to 9 bytes/],
  'was replaced': [
    ({ file }) => {
      writeFileSync(`${file}.new`, 'other');
      renameSync(`${file}.new`, file);
    },
    /another file has its name/,
  ],
  'became a link': [
    ({ file, root }) => {
      renameSync(file, join(root, 'moved'));
      symlinkSync(join(root, 'moved'), file);
    },
    /no regular file/,
  ],
  'became a folder': [
    ({ file }) => {
      unlinkSync(file);
      mkdirSync(file);
    },
    /no regular file/,
  ],
  'is behind a link out of the root': [
    ({ root, folder }) => {
      renameSync(join(root, 'live'), join(folder, 'elsewhere'));
      symlinkSync(join(folder, 'elsewhere'), join(root, 'live'));
    },
    /a link leads out of/,
  ],
  'is behind a link within the root': [
    ({ root }) => {
      renameSync(join(root, 'live'), join(root, 'moved'));
      symlinkSync(join(root, 'moved'), join(root, 'live'));
    },
    /a link leads elsewhere/,
  ],
  'has a link as its info file': [
    ({ info, folder }) => {
      renameSync(info, join(folder, 'other.xml'));
      symlinkSync(join(folder, 'other.xml'), info);
    },
    /its info file is no regular file/,
  ],
};
for (const [what, [damage, message]] of Object.entries(refusals)) {
  test(`nothing is deleted where the file ${what}`, async (t) => {
    const node = await open(t);
    damage(node);
    const error = await t.throwsAsync(node.recordings.remove(APP, node.ids[0]), { message });
    t.like(error, { code: 'recordingChanged', status: 409 });
    t.true(existsSync(node.file));
    t.not(await node.recordings.find(APP, node.ids[0]), undefined);
    t.is(entriesOf(readFileSync(node.info, 'utf8')).length, 2);
  });
}

test('nothing is deleted where the root is not there', async (t) => {
  const node = await open(t);
  rmSync(node.root, { recursive: true });
  await t.throwsAsync(node.recordings.remove(APP, node.ids[0]), { message: /its disk may not be mounted/ });
  t.not(await node.recordings.find(APP, node.ids[0]), undefined);
});

test('a foreign info file stays as it is', async (t) => {
  const { recordings, ids, file, info } = await open(t);
  writeFileSync(info, '<other/>');
  t.true(await recordings.remove(APP, ids[0]));
  t.false(existsSync(file));
  t.is(readFileSync(info, 'utf8'), '<other/>');
});
