import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { withLock } from '../../../../src/lib/files/lock-file.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

function lockFile(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-lock-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return join(folder, 'lock');
}

test.serial('a lock file has one holder at a time, also after one that has failed', async (t) => {
  const path = lockFile(t);
  let holders = 0;
  const step = async (index: number): Promise<number> => {
    t.is(++holders, 1);
    t.true(existsSync(path));
    await new Promise(setImmediate);
    holders--;
    if (index === 0) throw new Error('no');
    return index;
  };
  const all = await Promise.allSettled([0, 1, 2].map((index) => withLock(path, () => step(index))));
  t.deepEqual(
    all.map(({ status }) => status),
    ['rejected', 'fulfilled', 'fulfilled'],
  );
  t.false(existsSync(path));
});

test.serial(
  'the lock file of a dead process is removed after a while, and only one of those that wait gets it',
  async (t) => {
    const path = lockFile(t);
    writeFileSync(path, '');
    virtualTime(t);
    const began = performance.now();
    let holders = 0;
    let most = 0;
    const step = async (): Promise<number> => {
      most = Math.max(most, ++holders);
      for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
      holders--;
      return performance.now() - began;
    };
    const times = await Promise.all([1, 2, 3, 4].map(() => withLock(path, step)));
    t.true(
      times.every((ms) => ms >= 10_000),
      times.join(),
    );
    t.is(most, 1);
    t.deepEqual(readdirSync(join(path, '..')), []);
  },
);

test.serial('a lock is removed after a reboot though another process has the number of its holder', async (t) => {
  const path = lockFile(t);
  writeFileSync(path, `boot-before ${readlinkSync('/proc/self/ns/pid')} ${process.ppid}`);
  virtualTime(t);
  let isHeld = false;
  await withLock(path, async () => {
    isHeld = true;
  });
  t.true(isHeld);
  t.false(existsSync(path));
});
