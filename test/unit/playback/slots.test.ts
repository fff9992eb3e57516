import test from 'ava';
import { Slots } from '../../../src/playback/slots.ts';

test('requests beyond the limits of all clients and of one are refused', (t) => {
  const slots = new Slots(3, 2);
  const leave = slots.enter('a');
  slots.enter('a');
  t.throws(() => slots.enter('a'), { code: 'playbackBusy', message: /at most 2/ });
  const other = slots.enter('b');
  t.throws(() => slots.enter('c'), { code: 'playbackBusy', message: /at most 3/ });
  other();
  t.notThrows(() => slots.enter('c'));
  leave();
  t.notThrows(() => slots.enter('a'));
});

test('a slot is left when what is done in it has ended, well or not', async (t) => {
  const slots = new Slots(1, 1);
  t.is(await slots.during('a', async () => 'done'), 'done');
  const failing = slots.during('a', async () => await Promise.reject(new Error('failed')));
  await t.throwsAsync(
    slots.during('b', async () => undefined),
    { code: 'playbackBusy' },
  );
  await t.throwsAsync(failing, { message: 'failed' });
  t.is(await slots.during('b', async () => 'done'), 'done');
});
