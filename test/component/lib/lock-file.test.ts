import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import test from 'ava';
import { withLock } from '../../../src/lib/files/lock-file.ts';
import { until } from '../../support/time/until.ts';

const LOCK_FILE = new URL('../../../src/lib/files/lock-file.ts', import.meta.url).href;

test.serial('the lock of a process that was killed is free before it is stale', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-lock-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'lock');
  const script =
    `import { withLock } from ${JSON.stringify(LOCK_FILE)};` +
    `await withLock(${JSON.stringify(path)}, () => new Promise(() => setInterval(() => {}, 1000)));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
  const ended = once(child, 'exit');
  t.teardown(() => child.kill('SIGKILL'));
  await until('it has the lock', () => existsSync(path) && readFileSync(path, 'utf8').endsWith(` ${child.pid}`));
  child.kill('SIGKILL');
  await ended;
  // it never gets old
  const now = performance.now();
  const clock = mock.method(performance, 'now', () => now);
  t.teardown(() => clock.mock.restore());
  t.is(await withLock(path, async () => 'taken'), 'taken');
});
