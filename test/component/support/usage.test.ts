import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { cpuSeconds, processTree, proportionalBytes, residentBytes } from '../../support/load/usage.ts';

/** Runs a shell script that writes something and then waits to be killed. @returns its process id */
async function started(t: ExecutionContext, script: string): Promise<number> {
  const child = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => child.stdin.end());
  await once(child.stdout, 'data');
  return child.pid as number;
}

test('CPU time of a child that has ended still counts', async (t) => {
  const busy = `${process.execPath} -e 'while (process.cpuUsage().user < 3e5);'`;
  const pid = await started(t, `${busy}; echo ended; exec cat`);
  t.deepEqual(processTree(pid), [pid]);
  t.true(cpuSeconds(pid) >= 0.29);
});

test('memory that processes share counts once', async (t) => {
  const pid = await started(t, 'echo ready; cat');
  const bytes = proportionalBytes(pid);
  t.true(bytes > 0);
  t.true(bytes < residentBytes(pid));
});
