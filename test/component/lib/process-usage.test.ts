import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'ava';
import { isAlive } from '../../../src/lib/process-usage.ts';
import { zombie } from '../../support/programs/zombie.ts';

test('a process lives until it has ended, whether it is waited for or not', async (t) => {
  t.true(isAlive(process.pid));
  t.true(isAlive(1), 'of another user');
  const child = spawn('sleep', ['1000']);
  t.true(isAlive(child.pid as number));
  child.kill('SIGKILL');
  await once(child, 'exit');
  t.false(isAlive(child.pid as number));
  t.false(isAlive((await zombie(t)).pid));
});
