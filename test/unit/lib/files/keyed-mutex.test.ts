import test from 'ava';
import { KeyedMutex } from '../../../../src/lib/files/keyed-mutex.ts';

test('tasks with one key run one after the other, also after a failure; other keys beside them', async (t) => {
  const mutex = new KeyedMutex();
  const { promise, resolve } = Promise.withResolvers<void>();
  const order: string[] = [];
  const failing = mutex.run('a', async () => {
    await promise;
    order.push('a1');
    throw new Error('no');
  });
  const second = mutex.run('a', async () => order.push('a2'));
  await mutex.run('b', async () => order.push('b1'));
  t.deepEqual(order, ['b1']);
  resolve();
  await t.throwsAsync(failing, { message: 'no' });
  await second;
  t.deepEqual(order, ['b1', 'a1', 'a2']);
});

test('no two tasks with one key overlap, however they come', async (t) => {
  const mutex = new KeyedMutex();
  let running = 0;
  const runs: Promise<void>[] = [];
  const add = (more: number): void => {
    runs.push(
      mutex.run('a', async () => {
        t.is(++running, 1);
        for (let turn = more % 4; turn > 0; turn--) await Promise.resolve();
        running--;
        if (more > 0) queueMicrotask(() => add(more - 1));
      }),
    );
  };
  add(20);
  add(21);
  for (let at = 0; at < runs.length; at++) await runs[at];
  // a run that adds another does so after it resolved
  await new Promise(setImmediate);
  t.is(runs.length, 43);
  await Promise.all(runs);
});
