import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { Watchdog } from '../../../src/lib/watchdog.ts';
import { standStillBeforeTimers } from '../../support/time/stand-still.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

test.serial('silence is reported once, and not before its time', async (t) => {
  virtualTime(t);
  let told = 0;
  const dog = new Watchdog(40, () => told++);
  t.teardown(() => dog.close());
  await delay(39);
  t.is(told, 0);
  await until('it is told', () => told > 0);
  await delay(1000);
  t.is(told, 1);
});

test.serial('input that came while the process stood still is heard before it counts as missing', async (t) => {
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

test.serial('a closed watchdog is silent', async (t) => {
  virtualTime(t);
  let told = 0;
  const dog = new Watchdog(20, () => told++);
  dog.close();
  dog.close();
  await delay(1000);
  t.is(told, 0);
});
