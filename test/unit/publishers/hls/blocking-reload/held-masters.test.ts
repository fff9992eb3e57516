import test from 'ava';
import { KilnError } from '../../../../../src/errors.ts';
import { HeldMasters } from '../../../../../src/publishers/hls/blocking-reload/held-masters.ts';
import { MAX_WAITING } from '../../../../../src/publishers/hls/blocking-reload/waiters.ts';

const stays = (): void => {};

test('requests held for each playlist are released by themselves, and late ones when they are late', async (t) => {
  const held = new HeldMasters<string>();
  const [one, other, late] = [
    held.wait('one', 1e6, stays),
    held.wait('other', 1e6, stays),
    held.wait('other', 1, stays),
  ];
  held.expire(Date.now() + 1000);
  t.is(await late, 'overdue');
  held.check((playlist) => playlist === 'one');
  t.is(await one, 'ready');
  t.is(held.size, 1);
  held.limit(0);
  held.expire(Date.now());
  t.is(await other, 'overdue');
  t.is(await held.wait('one', 0, stays), 'overdue', 'its time is over already');
  t.is(held.size, 0);
  const [last] = [held.wait('one', 1e6, stays)];
  held.close();
  t.deepEqual([await last, await held.wait('one', 1e6, stays)], ['gone', 'gone']);
});

test('a client that leaves is not waited for', async (t) => {
  const held = new HeldMasters<string>();
  let leave = stays;
  const left = held.wait('one', 1e6, (cancel) => (leave = cancel));
  leave();
  t.is(await left, 'gone');
  t.is(held.size, 0);
  held.close();
});

test('requests held for master playlists are limited, and so is the number of those playlists', (t) => {
  const held = new HeldMasters<number>();
  const tooMany = { instanceOf: KilnError, code: 'tooManyWaiting' };
  for (let playlist = 0; playlist < 64; playlist++) void held.wait(playlist, 1e6, stays);
  t.throws(() => void held.wait(64, 1e6, stays), tooMany);
  for (let count = held.size; count < MAX_WAITING; count++) void held.wait(0, 1e6, stays);
  t.throws(() => void held.wait(0, 1e6, stays), tooMany);
  held.close();
});
