import { spawn } from 'node:child_process';
import test from 'ava';
import { LoadMeter, Saturation } from '../../../src/management/own-load.ts';
import { until } from '../../support/until.ts';

test('an event loop is at its end when it stays busy, and until it is calm', (t) => {
  const saturation = new Saturation();
  const after = (...utilizations: number[]): boolean => utilizations.map((value) => saturation.add(value)).at(-1) === true;
  t.false(after(1, 1, 1, 1), 'a burst');
  t.false(after(0.85, 1, 1, 1, 1), 'another one');
  t.true(after(1));
  t.true(after(0.85, 0.85, 0.85));
  t.false(after(0.5));
  t.false(after(1, 1, 1, 1));
});

test('what a node does not do itself is not its load, and what its children do is', async (t) => {
  const meter = new LoadMeter();
  await meter.measure();
  const child = spawn(process.execPath, ['-e', 'const end = Date.now() + 20000; while (Date.now() < end);'], { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  let last = performance.now();
  // it gets what the machine has to give; this process waits and does next to nothing
  await until('the child shows', async () => {
    if (performance.now() - last < 1000) return false;
    last = performance.now();
    const { load, full } = await meter.measure();
    t.false(full);
    return load > 0.15 && load <= 1;
  });
});
