import test from 'ava';
import { within } from '../../../src/lib/within.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const never = new Promise<string>(() => {});

test('a value that comes in time is the result', async (t) => {
  t.is(await within(60_000, Promise.resolve('value')), 'value');
  await t.throwsAsync(within(60_000, Promise.reject(new Error('no'))), { message: 'no' });
});

test.serial('an operation past its time limit has no result, and a later error is ignored', async (t) => {
  virtualTime(t);
  const { promise, reject } = Promise.withResolvers<string>();
  const began = performance.now();
  t.is(await within(1000, promise), undefined);
  t.true(performance.now() - began >= 1000);
  reject(new Error('late'));
  await new Promise(setImmediate);
});

test('a signal ends the wait, also one that has aborted before', async (t) => {
  const abort = new AbortController();
  const wait = within(60_000, never, abort.signal);
  abort.abort();
  t.is(await wait, undefined);
  t.is(await within(60_000, never, abort.signal), undefined);
});
