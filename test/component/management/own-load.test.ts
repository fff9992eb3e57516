import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import test from 'ava';
import { LoadMeter } from '../../../src/management/own-load.ts';
import { cpuSeconds } from '../../support/load/usage.ts';
import { until } from '../../support/time/until.ts';

test('the load of a node includes its child processes, and no others', async (t) => {
  const meter = new LoadMeter();
  meter.measure();
  const begin = performance.now();
  const child = spawn(process.execPath, ['-e', 'const end = Date.now() + 90000; while (Date.now() < end);'], {
    stdio: 'ignore',
  });
  t.teardown(() => child.kill('SIGKILL'));
  // a second of it, however long the machine takes to give that
  await until('the child has worked', () => cpuSeconds(child.pid as number) > 1);
  const least = cpuSeconds(child.pid as number) / ((performance.now() - begin) / 1000) / availableParallelism();
  const shown = meter.measure();
  t.true(shown >= least - 0.01 && shown <= 1, `${shown} of ${least}`);
});
