import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { DerivedFiles } from '../../../../src/recording/finished/derived-files.ts';

const ID = `20261129T140531123-${'a'.repeat(32)}`;
const OTHER = `20261129T140531124-${'b'.repeat(32)}`;
const yes = async (): Promise<boolean> => true;

function open(t: ExecutionContext) {
  const parent = mkdtempSync(join(tmpdir(), 'kiln-derived-'));
  t.teardown(() => rmSync(parent, { recursive: true }));
  const folder = join(parent, 'derived');
  return { folder, day: join(folder, '20261129'), files: new DerivedFiles(folder) };
}

test('a derived file is read as it was written last', async (t) => {
  const { files, day } = open(t);
  t.is(await files.read(ID, 100), undefined);
  await files.write(ID, [Buffer.from('a long one')], yes);
  await files.write(ID, [Buffer.from('an'), Buffer.from('other')], yes);
  t.is(String(await files.read(ID, 7)), 'another');
  t.is(await files.read(ID, 6), undefined);
  t.deepEqual(readdirSync(day), [`${ID}.index`]);
});

test('a derived file goes, and its folder with the last one', async (t) => {
  const { files, day } = open(t);
  for (const id of [ID, OTHER]) await files.write(id, [Buffer.from('x')], yes);
  await files.remove(ID);
  t.is(await files.read(ID, 1), undefined);
  t.is(String(await files.read(OTHER, 1)), 'x');
  await files.remove(OTHER);
  await files.remove(OTHER);
  t.false(existsSync(day));
});

test('a derived file of a recording that is gone by then does not stay', async (t) => {
  const { files, day } = open(t);
  await files.write(ID, [Buffer.from('x')], async () => false);
  t.false(existsSync(day));
});

test('a derived file that cannot be written leaves nothing', async (t) => {
  const { files, day } = open(t);
  mkdirSync(join(day, `${ID}.index`, 'full'), { recursive: true });
  await t.throwsAsync(files.write(ID, [Buffer.from('x')], yes));
  t.deepEqual(readdirSync(day), [`${ID}.index`]);
  t.is(await files.read(ID, 10), undefined);
});

test('what is no id of a recording has no derived file', async (t) => {
  const { files, folder } = open(t);
  writeFileSync(join(folder, '../outside.index'), 'secret');
  await files.write('../outside', [Buffer.from('x')], yes);
  t.is(await files.read('../outside', 100), undefined);
  await files.remove('../outside');
  t.false(existsSync(folder));
});
