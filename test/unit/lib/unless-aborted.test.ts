import test from 'ava';
import { unlessAborted } from '../../../src/lib/unless-aborted.ts';

test('a promise settles as ever, or to nothing when its signal is aborted before', async (t) => {
  const { signal } = new AbortController();
  t.is(await unlessAborted(Promise.resolve(1), signal), 1);
  await t.throwsAsync(unlessAborted(Promise.reject(new Error('no')), signal), { message: 'no' });
  const later = new AbortController();
  const waiting = unlessAborted(new Promise<number>(() => {}), later.signal);
  later.abort();
  t.is(await waiting, undefined);
  t.is(await unlessAborted(new Promise<number>(() => {}), later.signal), undefined);
});
