import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { findRenamed, partsBelow, PathError, renameFree } from '../../../../src/lib/files/paths.ts';

for (const [path, parts] of [
  ['/a/b.ts', ['a', 'b.ts']],
  ['//a//./b.ts', ['a', 'b.ts']],
  ['/data/rec/a/b.ts', ['a', 'b.ts']],
  ['//data/./rec/b.ts', ['b.ts']],
  ['/data/rec/data/rec/b.ts', ['data', 'rec', 'b.ts']],
  ['/data/records/b.ts', ['data', 'records', 'b.ts']],
  ['/data/b.ts', ['data', 'b.ts']],
  ['data/rec/b.ts', ['data', 'rec', 'b.ts']],
  ['/..b.ts', ['..b.ts']],
] as const) {
  test(`${path} is below /data/rec`, (t) => t.deepEqual(partsBelow('/data/rec', path), [...parts]));
}

for (const path of [
  '/../b.ts',
  '/data/rec/../b.ts',
  '/data/rec/a/../b.ts',
  '/a/../../b.ts',
  '/',
  '/data/rec',
  '/a/',
  '/a\0',
])
  test(`${JSON.stringify(path)} names no file below /data/rec`, (t) => {
    t.throws(() => partsBelow('/data/rec', path), { instanceOf: PathError });
  });

test('any path is below the root of the file system', (t) => {
  t.deepEqual(partsBelow('/', '/a/b.ts'), ['a', 'b.ts']);
});

test('a name that is in use gets a suffix, however long it is', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-paths-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  for (const stem of ['a', 'x'.repeat(251), `x${'ü'.repeat(125)}`, '\u{1F600}'.repeat(62)]) {
    const path = join(folder, `${stem}.mp4`);
    writeFileSync(path, 'mine');
    const names = new Set([path]);
    for (let copy = 1; copy <= 11; copy++) {
      const from = join(folder, 'tmp');
      writeFileSync(from, String(copy));
      const { ino } = statSync(from);
      const name = await renameFree(from, path);
      t.true(name.endsWith(`_${copy}.mp4`), name);
      t.notRegex(name, /\uFFFD/);
      t.is(await findRenamed(ino, path), name);
      names.add(name);
    }
    t.is(names.size, 12);
  }
  t.is(readdirSync(folder).length, 4 * 12);
});
