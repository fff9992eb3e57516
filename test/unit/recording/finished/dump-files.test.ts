import { existsSync, readdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { APP, DUMPED_LIST as LIST, openFinished, openRecordings } from '../../../support/recording/finished.ts';

/** A dump of two segments. */
async function open(t: ExecutionContext) {
  const node = openFinished(t);
  const dump = await node.dump('vod');
  const { folder, infoFile = '' } = dump;
  const write = (name: string, text = name): void => writeFileSync(join(folder, name), text);
  const recordings = openRecordings(node.folder);
  const { recorded } = await recordings.page(APP, { limit: 10 });
  const { id = '' } = recorded[0] ?? {};
  return { ...node, parent: node.dumps, folder, write, infoFile, dump, recordings, recorded, id, state: node.folder };
}

test('a dump is listed with its folder, and goes with all its files', async (t) => {
  const { recordings, recorded, id, folder, infoFile, index } = await open(t);
  t.regex(id, /^20260305T120000000-[0-9a-f]{32}$/);
  t.like(recorded[0]?.entry, {
    ...{ id: 'd', stream: 's', metadata: 'mine', root: folder, path: 'llhls.m3u8', container: 'fMP4' },
    ...{ size: 18, recordTime: 4000, infoPath: infoFile },
  });
  t.is(await index.total(APP), 0, 'dumps do not count towards MaxTotalSize');
  t.true(await recordings.remove(APP, id));
  t.false(existsSync(folder));
  t.false(existsSync(infoFile));
  t.false(await recordings.remove(APP, id));
});

test('what others have put into the folder stays, and what other playlists name', async (t) => {
  const { recordings, id, folder, write } = await open(t);
  write('other.m3u8', '#EXTM3U\n#EXT-X-MAP:URI="init_x.m4s"\n#EXTINF:2,\nseg_9.m4s\n');
  write('seg_9.m4s');
  write('llhls.m3u8', '#EXTM3U\nother.m3u8\n');
  t.true(await recordings.remove(APP, id));
  t.deepEqual(readdirSync(folder).sort(), ['init_x.m4s', 'llhls.m3u8', 'other.m3u8', 'seg_9.m4s']);
});

test('a dump that is running, or whose files are gone in part, is told apart', async (t) => {
  const { recordings, id, folder, state } = await open(t);
  const dumping = openRecordings(state, { isDumping: (asked) => asked === folder });
  await t.throwsAsync(dumping.remove(APP, id), { message: `The recording is still written: [${id}]` });
  for (const name of ['seg_0.m4s', 'llhls.m3u8']) unlinkSync(join(folder, name));
  t.true(await recordings.remove(APP, id));
  t.false(existsSync(folder));
});

test('a dump whose folder is gone can be removed, unless its disk is', async (t) => {
  const { recordings, id, parent, folder, index, dump } = await open(t);
  rmSync(folder, { recursive: true });
  t.true(await recordings.remove(APP, id));
  await index.addDump(dump);
  const [next] = (await recordings.page(APP, { limit: 1 })).recorded;
  rmSync(parent, { recursive: true });
  await t.throwsAsync(recordings.remove(APP, next?.id ?? ''), { message: /its disk may not be mounted/ });
});

type Opened = Awaited<ReturnType<typeof open>>;

const refusals: Readonly<Record<string, [(node: Opened) => void, RegExp]>> = {
  'a playlist has grown': [({ write }) => write('chunklist.m3u8', `${LIST}seg_2.m4s\n`), /a playlist was changed/],
  'a playlist became a link': [
    ({ folder }) => {
      renameSync(join(folder, 'chunklist.m3u8'), join(folder, 'moved'));
      symlinkSync(join(folder, 'moved'), join(folder, 'chunklist.m3u8'));
    },
    /a playlist was changed/,
  ],
  'a segment became a link': [
    ({ folder, parent }) => {
      renameSync(join(folder, 'seg_1.m4s'), join(parent, 'moved'));
      symlinkSync(join(parent, 'moved'), join(folder, 'seg_1.m4s'));
    },
    /it is no regular file/,
  ],
  'the folder became a link': [
    ({ folder, parent }) => {
      renameSync(folder, join(parent, 'moved'));
      symlinkSync(join(parent, 'moved'), folder);
    },
    /a link leads elsewhere/,
  ],
};
for (const [what, [damage, message]] of Object.entries(refusals)) {
  test(`nothing of a dump is deleted where ${what}`, async (t) => {
    const node = await open(t);
    damage(node);
    const files = readdirSync(node.folder);
    t.like(await t.throwsAsync(node.recordings.remove(APP, node.id), { message }), { status: 409 });
    t.deepEqual(readdirSync(node.folder), files);
    t.true(existsSync(node.infoFile));
    t.not(await node.recordings.find(APP, node.id), undefined);
  });
}

test('a playlist cannot lead out of the folder', async (t) => {
  const { index, recordings, folder, parent, write, dump } = await open(t);
  writeFileSync(join(parent, 'outside'), 'mine');
  write(
    'bad.m3u8',
    `#EXTM3U\n../outside\n..\n.\n${parent}/outside\nhttp://host/outside\n#EXT-X-MAP:URI="../outside"\n`,
  );
  await index.addDump({ ...dump, lists: ['bad.m3u8'], masters: [] });
  const [, second] = (await recordings.page(APP, { limit: 2 })).recorded.toSorted((one, other) =>
    one.entry.path < other.entry.path ? 1 : -1,
  );
  t.is(second?.entry.path, 'bad.m3u8');
  t.true(await recordings.remove(APP, second?.id ?? ''));
  t.true(existsSync(join(parent, 'outside')));
  t.false(existsSync(join(folder, 'bad.m3u8')));
});
