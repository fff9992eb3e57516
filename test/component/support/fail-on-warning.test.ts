import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';

const ROOT = join(import.meta.dirname, '../../..');

test('a warning of Node fails the test file that it comes in', async (t) => {
  const folder = await mkdtemp(join(ROOT, 'test/component/support/warns-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'warns.test.ts');
  await writeFile(
    file,
    `import test from 'ava';
     import { EventEmitter } from 'node:events';
     test('leaks', (t) => {
       const emitter = new EventEmitter();
       for (let count = 0; count < 11; count++) emitter.on('event', () => {});
       t.pass();
     });`,
  );
  const run = promisify(execFile)(join(ROOT, 'node_modules/.bin/ava'), [file], { cwd: ROOT });
  const { stdout } = await t.throwsAsync<Error & { stdout: string }>(run);
  t.regex(stdout, /MaxListenersExceededWarning/);
});
