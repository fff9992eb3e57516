import test from 'ava';
import { Lane } from '../../../../src/recording/delivery/lane.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const HOUR_MS = 3600_000;

test.serial('several deliveries run at once, each once', async (t) => {
  let running = 0;
  let most = 0;
  const done: string[] = [];
  const lane = openLane(async (name) => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
    done.push(name);
  });
  const names = Array.from({ length: 20 }, (_, index) => String(index));
  for (const name of names) lane.add(name);
  await until('all are done', () => lane.size === 0);
  t.deepEqual(done, names);
  t.is(most, 3);
});

test.serial('a failure pauses all, longer and longer, then one at a time asks', async (t) => {
  virtualTime(t);
  let isDown = true;
  const tries: { name: string; at: number }[] = [];
  const began = Date.now();
  const lane = openLane(async (name) => {
    tries.push({ name, at: Date.now() - began });
    if (isDown) throw new Error('down');
  });
  for (const name of ['a', 'b', 'c', 'd']) lane.add(name);
  await until('many tries', () => tries.length > 12, HOUR_MS);
  t.is(lane.size, 4);
  const pauses = tries.slice(4).map(({ at }, index) => at - (tries[index + 3]?.at ?? 0));
  t.true(
    pauses.every((ms, index) => index < 2 || ms > 1.5 * (pauses[index - 1] ?? 0)),
    pauses.join(),
  );
  // none is kept waiting by another
  t.is(new Set(tries.slice(-4).map(({ name }) => name)).size, 4);
  t.is(events.at(-1), 'down 4');
  isDown = false;
  await until('all are done', () => lane.size === 0, HOUR_MS);
  t.deepEqual(events.at(-1), 'empty');
  t.is(events.filter((event) => event.startsWith('recovered')).length, 1);
});

test.serial('a delivery that fails again and again does not keep the others from being done', async (t) => {
  virtualTime(t);
  const done: string[] = [];
  const lane = openLane(async (name) => {
    if (name === 'bad') throw new Error('bad');
    done.push(name);
  });
  lane.add('bad');
  for (let index = 0; index < 10; index++) lane.add(String(index));
  await until('the others are done', () => done.length === 10);
  t.is(lane.size, 1);
  await lane.close();
});

test.serial('closing waits for what runs, and starts nothing more', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const begun: string[] = [];
  const lane = openLane(async (name) => {
    begun.push(name);
    await promise;
  });
  for (const name of ['a', 'b', 'c', 'd']) lane.add(name);
  let isClosed = false;
  const closed = lane.close().then(() => (isClosed = true));
  await new Promise(setImmediate);
  t.false(isClosed);
  resolve();
  await closed;
  t.deepEqual(begun, ['a', 'b', 'c']);
});

let events: string[] = [];

function openLane(run: (name: string) => Promise<void>): Lane {
  events = [];
  return new Lane({
    most: 3,
    run,
    onFailure: ({ message }, waiting) => events.push(`${message} ${waiting}`),
    onRecovery: (failures) => events.push(`recovered after ${failures}`),
    onEmpty: () => events.push('empty'),
  });
}
