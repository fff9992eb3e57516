import test from 'ava';
import { SharedWork } from '../../../src/lib/shared-work.ts';

function open() {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let signal: AbortSignal | undefined;
  const work = new SharedWork((stop) => {
    signal = stop;
    return promise;
  });
  return { work, resolve, reject, isStopped: () => signal?.aborted };
}

test('all who wait for shared work get its result', async (t) => {
  const { work, resolve, isStopped } = open();
  const all = [work.join(), work.join(new AbortController().signal)];
  t.false(isStopped());
  resolve(3);
  t.deepEqual(await Promise.all(all), [3, 3]);
});

test('shared work goes on until the last of those who wait has left', async (t) => {
  const { work, isStopped } = open();
  const [one, other] = [new AbortController(), new AbortController()];
  const waiting = [one, other].map(({ signal }) => work.join(signal));
  one.abort(new Error('one left'));
  await t.throwsAsync(waiting[0] as Promise<number>, { message: 'one left' });
  t.deepEqual([isStopped(), work.isLeft], [false, false]);
  other.abort(new Error('other left'));
  await t.throwsAsync(waiting[1] as Promise<number>, { message: 'other left' });
  t.deepEqual([isStopped(), work.isLeft], [true, true]);
});

test('who comes with an aborted signal does not wait for shared work', async (t) => {
  const { work, isStopped } = open();
  await t.throwsAsync(work.join(AbortSignal.abort(new Error('gone'))), { message: 'gone' });
  t.false(isStopped());
});

test('all who wait for shared work learn why it failed', async (t) => {
  const { work, reject } = open();
  const all = [work.join(), work.join()];
  reject(new Error('broken'));
  for (const one of all) await t.throwsAsync(one, { message: 'broken' });
});
