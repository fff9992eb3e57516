import test from 'ava';
import { Waiters } from '../../../../../src/publishers/hls/blocking-reload/waiters.ts';

const never = () => false;
const stays = () => {};

test('a request that begins to wait after the end gets the reason of the end', async (t) => {
  const waiters = new Waiters();
  const waiting = waiters.wait(never, 1e9, stays);
  waiters.close('overdue');
  waiters.close();
  t.is(await waiting, 'overdue');
  t.is(await waiters.wait(never, 1e9, stays), 'overdue');
  t.is(waiters.size, 0);
});

test('a client that has left already waits for nothing', async (t) => {
  const waiters = new Waiters();
  t.is(await waiters.wait(never, 1e9, (cancel) => cancel()), 'gone');
  t.is(waiters.size, 0);
});
