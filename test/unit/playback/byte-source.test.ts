import { appendFile, mkdtemp, rename, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { LocalFile, SourceError } from '../../../src/playback/byte-source.ts';

const folder = await mkdtemp(join(tmpdir(), 'kiln-source-'));
test.after.always(() => rm(folder, { recursive: true }));

async function place(name: string, bytes: Buffer) {
  const filePath = join(folder, name);
  await writeFile(filePath, bytes);
  return { filePath, inode: (await stat(filePath)).ino, size: bytes.length };
}

const BYTES = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 256));

test('a local file gives exactly the bytes that are asked for', async (t) => {
  const source = await LocalFile.open(await place('a', BYTES));
  t.is(source.size, 1000);
  t.deepEqual(await source.read(0, 1000), BYTES);
  t.deepEqual(await source.read(17, 200), BYTES.subarray(17, 217));
  t.is((await source.read(1000, 0)).length, 0);
  for (const [offset, length] of [
    [1, 1000],
    [-1, 2],
    [0, -1],
    [2 ** 40, 1],
  ] as const)
    await t.throwsAsync(source.read(offset, length), { instanceOf: SourceError });
  await source.close();
  await source.close();
});

test('a read that is aborted fails with its reason', async (t) => {
  const source = await LocalFile.open(await place('aborted', BYTES));
  const reason = new Error('gone');
  await t.throwsAsync(source.read(0, 10, AbortSignal.abort(reason)), { is: reason });
  await source.close();
});

test('a file that became shorter while it is open is told', async (t) => {
  const known = await place('shorter', BYTES);
  const source = await LocalFile.open(known);
  await truncate(known.filePath, 500);
  t.deepEqual(await source.read(0, 500), BYTES.subarray(0, 500));
  await t.throwsAsync(source.read(400, 200), { instanceOf: SourceError, message: /shorter/ });
  await source.close();
});

test('a file that is not the recorded one is not opened', async (t) => {
  const known = await place('b', BYTES);
  const other = await place('c', BYTES);
  const link = join(folder, 'link');
  await symlink(known.filePath, link);
  await t.throwsAsync(LocalFile.open({ ...known, filePath: link }), { instanceOf: SourceError });
  await t.throwsAsync(LocalFile.open({ ...known, filePath: folder }), { instanceOf: SourceError, message: /regular/ });
  await t.throwsAsync(LocalFile.open({ ...known, filePath: join(folder, 'none') }), {
    instanceOf: SourceError,
    message: /gone/,
  });
  await appendFile(known.filePath, 'x');
  await t.throwsAsync(LocalFile.open(known), { instanceOf: SourceError, message: /from 1000 to 1001/ });
  await rename(other.filePath, known.filePath);
  await t.throwsAsync(LocalFile.open(known), { instanceOf: SourceError, message: /another file/ });
});
