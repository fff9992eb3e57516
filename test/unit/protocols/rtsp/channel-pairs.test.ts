import test from 'ava';
import { ChannelPairs } from '../../../../src/protocols/rtsp/channel-pairs.ts';

test('a track gets the channels that it wants, or the first free ones', (t) => {
  const pairs = new ChannelPairs();
  t.deepEqual(pairs.add(0, undefined), [0, 1]);
  t.deepEqual(pairs.add(1, [10, 4]), [10, 4]);
  t.deepEqual(pairs.add(2, [4, 5]), [2, 3]);
  t.deepEqual(pairs.of(1), [10, 4]);
  t.deepEqual(pairs.use(4), { track: 1, isRtcp: true });
  t.deepEqual(pairs.use(10), { track: 1, isRtcp: false });
  t.is(pairs.use(5), undefined);
  // another pair of the same track replaces the first
  t.deepEqual(pairs.add(1, [4, 5]), [4, 5]);
  t.is(pairs.use(10), undefined);
  t.deepEqual(pairs.use(4), { track: 1, isRtcp: false });
});

test('no pair is left after 128', (t) => {
  const pairs = new ChannelPairs();
  for (let track = 0; track < 128; track++) t.deepEqual(pairs.add(track, [0, 1]), [2 * track, 2 * track + 1]);
  t.is(pairs.add(128, undefined), undefined);
  t.is(pairs.of(128), undefined);
});
