import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { DiskCalls, DiskHangs } from '../../../src/core/disk-calls.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

function open(t: ExecutionContext, most = 10) {
  virtualTime(t);
  const calls = new DiskCalls({ most });
  const events: string[] = [];
  calls.on('slow', (folder) => events.push(`${folder} is slow`));
  calls.on('back', (folder, ms) => events.push(`${folder} is back after ${Math.round(ms / 1000)} s`));
  return { calls, events };
}

/** A call of the system that returns when it is told to. */
function hanging() {
  const { promise, resolve } = Promise.withResolvers<string>();
  return { call: () => promise, end: () => resolve('done') };
}

test('a disk whose calls hang is reported once, and once more when they have returned for a while', async (t) => {
  const { calls, events } = open(t);
  const disk = calls.of('/dvr');
  const { call, end } = hanging();
  const [one, other] = [disk.take(call), disk.take(call)];
  const waiting = t.throwsAsync(
    disk.unlessHanging(() => one),
    { instanceOf: DiskHangs },
  );
  await delay(4000);
  t.false(disk.hangs);
  await delay(2000);
  t.true(disk.hangs);
  await waiting;
  await t.throwsAsync(
    disk.unlessHanging(() => disk.take(() => Promise.resolve(t.fail('it waits for a disk that hangs')))),
    { instanceOf: DiskHangs },
  );
  await delay(60_000);
  t.deepEqual([events, calls.slow], [['/dvr is slow'], 1]);
  end();
  t.deepEqual(await Promise.all([one, other]), ['done', 'done']);
  t.deepEqual([disk.hangs, calls.slow], [false, 1]);
  t.is(await disk.unlessHanging(() => disk.take(() => Promise.resolve('again'))), 'again');
  t.is(await disk.unlessHanging(() => disk.take(() => Promise.resolve(undefined))), undefined);
  await delay(20_000);
  t.deepEqual([events, calls.slow], [['/dvr is slow', '/dvr is back after 66 s'], 0]);
});

test('calls that take a while one after the other do not hang', async (t) => {
  const { calls, events } = open(t);
  const disk = calls.of('/dvr');
  for (let count = 0; count < 10; count++) await disk.take(() => delay(4000));
  await Promise.all(Array.from({ length: 20 }, () => disk.take(() => delay(4000))));
  t.deepEqual([events, disk.hangs], [[], false]);
});

test('a disk that hangs leaves calls to others, and all disks together leave threads', async (t) => {
  const { calls } = open(t, 5);
  const { call, end } = hanging();
  let running = 0;
  const count = (): Promise<string> => (running++, call());
  const hung = ['/a', '/b'].flatMap((root) => Array.from({ length: 4 }, () => calls.of(root).take(count)));
  await delay(100);
  t.is(running, 4);
  t.is(await calls.of('/c').take(() => Promise.resolve('done')), 'done');
  const more = [calls.of('/c').take(count), calls.of('/d').take(count)];
  await delay(100);
  t.is(running, 5);
  end();
  t.is((await Promise.all([...hung, ...more])).length, running);
});
