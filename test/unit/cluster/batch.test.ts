import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { Batch } from '../../../cluster/redis/batch.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

function doubling() {
  const handled: (readonly number[])[] = [];
  const batch = new Batch(
    async (items: readonly number[]) => {
      handled.push(items);
      await delay(5);
      if (items.includes(13)) throw new Error('not this one');
      return items.map((item) => 2 * item);
    },
    { waitMs: 50, most: 3 },
  );
  return { handled, batch };
}

test.serial('entries that are added within a moment are handled together, and each gets its own result', async (t) => {
  virtualTime(t);
  const { handled, batch } = doubling();
  const first = batch.add(1);
  await delay(40);
  const second = batch.add(2);
  t.deepEqual(handled, []);
  t.deepEqual(await Promise.all([first, second]), [2, 4]);
  t.is(await batch.add(5), 10);
  t.deepEqual(handled, [[1, 2], [5]]);
});

test.serial('a full batch does not wait, nor does one that is flushed', async (t) => {
  virtualTime(t);
  const { handled, batch } = doubling();
  const results = [1, 2, 3, 4].map((item) => batch.add(item));
  t.deepEqual(handled, [[1, 2, 3]]);
  batch.flush();
  batch.flush();
  t.deepEqual(handled, [[1, 2, 3], [4]]);
  t.deepEqual(await Promise.all(results), [2, 4, 6, 8]);
  await delay(200);
  t.is(handled.length, 2, 'its time was over with the flush');
});

test.serial('a command that fails fails for all that it was for, and for nothing else', async (t) => {
  virtualTime(t);
  const { batch } = doubling();
  const failing = [12, 13].map((item) => batch.add(item));
  batch.flush();
  const next = batch.add(1);
  for (const result of failing) await t.throwsAsync(result, { message: 'not this one' });
  t.is(await next, 2);
});
