import { spawn } from 'node:child_process';
import test from 'ava';
import { LoadMeter } from '../../../src/management/own-load.ts';
import { until } from '../../support/until.ts';

test('what a node does not do itself is not its load, and what its children do is', async (t) => {
  const meter = new LoadMeter();
  meter.measure();
  const child = spawn(process.execPath, ['-e', 'const end = Date.now() + 20000; while (Date.now() < end);'], { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  let last = performance.now();
  // it gets what the machine has to give; this process waits and does next to nothing
  const shown = await until('the child shows', async () => {
    if (performance.now() - last < 1000) return false;
    last = performance.now();
    const load = meter.measure();
    return load > 0.15 && load;
  });
  t.true(shown <= 1, `${shown}`);
});
