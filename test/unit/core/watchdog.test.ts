import test from 'ava';
import { Watchdog } from '../../../src/core/watchdog.ts';
import { standStillBeforeTimers } from '../../support/stand-still.ts';
import { until } from '../../support/until.ts';

test('silence is told of once, and not before its time', async (t) => {
  let told = 0;
  const since = performance.now();
  const dog = new Watchdog(40, () => told++);
  t.teardown(() => dog.close());
  await until('it is told', () => told > 0);
  t.true(performance.now() - since >= 39);
  const again = performance.now();
  await until('another while', () => performance.now() - again > 80);
  t.is(told, 1);
});

test('what came while the process stood still is heard before it is missed', async (t) => {
  const told: string[] = [];
  const dog = new Watchdog(200, () => told.push('silence'));
  t.teardown(() => dog.close());
  await standStillBeforeTimers(600);
  setImmediate(() => {
    told.push('heard');
    dog.heard();
  });
  await until('both', () => told.length === 2);
  t.deepEqual(told, ['heard', 'silence']);
});

test('one that is closed tells nothing', async (t) => {
  let told = 0;
  const dog = new Watchdog(20, () => told++);
  dog.close();
  dog.close();
  const since = performance.now();
  await until('a while', () => performance.now() - since > 60);
  t.is(told, 0);
});
