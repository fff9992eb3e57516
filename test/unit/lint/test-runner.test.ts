import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { imports } from '../../lint/imports.ts';

const ROOT = join(import.meta.dirname, '../../..');

// ava ends a process that imports it without having been started by it
test('measurements and the soak load no test runner', (t) => {
  const loaded = new Map<string, string>();
  const load = (file: string, by: string): void => {
    if (loaded.has(file)) return;
    loaded.set(file, by);
    for (const { specifier, typeOnly } of imports(readFileSync(file, 'utf8'))) {
      t.false(!typeOnly && specifier === 'ava', `${file}, which ${by} loads, imports ava`);
      if (!typeOnly && specifier.startsWith('.')) load(join(dirname(file), specifier), file);
    }
  };
  const programs = globSync('test/{bench,soak,support/load/programs}/*.ts', { cwd: ROOT });
  t.true(programs.length > 20);
  for (const file of programs) load(join(ROOT, file), 'a command');
});
