import test from 'ava';
import { Limiter } from '../../../src/lib/limiter.ts';

function gate(): { readonly task: () => Promise<void>; readonly open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { task: () => promise, open: resolve };
}

test('as many tasks as allowed run at a time, the others in order', async (t) => {
  const limiter = new Limiter(2);
  const started: number[] = [];
  let running = 0;
  let most = 0;
  const results = await Promise.all(
    [0, 1, 2, 3, 4].map((index) =>
      limiter.run(async () => {
        started.push(index);
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running--;
        return index;
      }),
    ),
  );
  t.deepEqual(results, [0, 1, 2, 3, 4]);
  t.deepEqual(started, [0, 1, 2, 3, 4]);
  t.is(most, 2);
  t.is(limiter.size, 0);
});

test('a task starts synchronously while the limit is not reached', async (t) => {
  const limiter = new Limiter(1);
  let started = false;
  const run = limiter.run(async () => {
    started = true;
  });
  t.true(started);
  await run;
});

test('a task beyond those that may wait is rejected with the error of its caller', async (t) => {
  const limiter = new Limiter(1, 1);
  const { task, open } = gate();
  const accepted = [limiter.run(task), limiter.run(task)];
  t.is(limiter.size, 2);
  await t.throwsAsync(
    limiter.run(task, () => new RangeError('full')),
    { instanceOf: RangeError, message: 'full' },
  );
  await t.throwsAsync(limiter.run(task), { message: 'too many wait' });
  open();
  await Promise.all(accepted);
  t.is(await limiter.run(async () => 7), 7);
});

test('a task that fails frees its place', async (t) => {
  const limiter = new Limiter(1);
  const failing = limiter.run(async () => {
    throw new Error('no');
  });
  const next = limiter.run(async () => 7);
  await t.throwsAsync(failing, { message: 'no' });
  t.is(await next, 7);
});

test('tasks that wait can be rejected while those that run go on', async (t) => {
  const limiter = new Limiter(1);
  const { task, open } = gate();
  const running = limiter.run(task);
  const waiting = limiter.run(async () => t.fail('was rejected'));
  limiter.rejectWaiting(() => new Error('over'));
  await t.throwsAsync(waiting, { message: 'over' });
  t.is(limiter.size, 1);
  open();
  await running;
  t.is(limiter.size, 0);
});
