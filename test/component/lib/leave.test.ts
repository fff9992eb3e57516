import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';

const MODULE = join(import.meta.dirname, '../../../src/lib/leave.ts');

/** How a process ends that leaves with code 3. @param before what it does first */
async function left(t: ExecutionContext, before: string): Promise<unknown[]> {
  const program = `
    import { open } from 'node:fs/promises';
    import { writeSync } from 'node:fs';
    import { leave, threadsAreHeld } from ${JSON.stringify(MODULE)};
    process.on('exit', () => writeSync(1, 'left'));
    ${before}
    writeSync(1, (await threadsAreHeld()) + ' ');
    leave(3);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk));
  const end = await once(child, 'close');
  return [text, ...end];
}

test('a process ends with its code and what is to be done then, also where a call of the system does not return', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-leave-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const fifo = join(folder, 'fifo');
  execFileSync('mkfifo', [fifo]);
  t.deepEqual(await left(t, ''), ['false left', 3, null]);
  // a FIFO that nothing reads keeps who opens it
  t.deepEqual(await left(t, `void open(${JSON.stringify(fifo)}, 'w');`), ['true left', 3, null]);
});
