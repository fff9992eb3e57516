import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { ExecutionContext } from 'ava';
import { until } from '../time/until.ts';

/** A process that has been killed, and whose parent does not wait for it. @returns its id, and what /proc said of it before */
export async function zombie(t: ExecutionContext): Promise<{ readonly pid: number; readonly stat: string }> {
  // what the shell becomes does not know of its child
  const parent = spawn('sh', ['-c', 'sleep 1000 & echo $!; exec sleep 1000'], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.teardown(() => parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  const read = () => readFile(`/proc/${pid}/stat`, 'latin1');
  await until(
    'both are what they will be',
    async () => (await readFile(`/proc/${parent.pid}/comm`, 'latin1')) === 'sleep\n',
  );
  const stat = await read();
  process.kill(pid, 'SIGKILL');
  await until('it is a zombie', async () => (await read()).includes(') Z '));
  return { pid, stat };
}
