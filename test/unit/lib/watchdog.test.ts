import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { Watchdog } from '../../../src/lib/watchdog.ts';
import { standStillBeforeTimers } from '../../support/time/stand-still.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

test.serial('silence is told of once, and not before its time', async (t) => {
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

test.serial('what came while the process stood still is heard before it is missed', async (t) => {
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

test.serial('one that is closed tells nothing', async (t) => {
  virtualTime(t);
  let told = 0;
  const dog = new Watchdog(20, () => told++);
  dog.close();
  dog.close();
  await delay(1000);
  t.is(told, 0);
});
