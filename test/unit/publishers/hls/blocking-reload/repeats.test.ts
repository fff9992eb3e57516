import test from 'ava';
import type { Viewer } from '../../../../../src/publishers/hls/answer/played-stream.ts';
import { Repeats } from '../../../../../src/publishers/hls/blocking-reload/repeats.ts';

const viewer = (): Viewer => ({ createdTime: 0, sent: () => {} });

test('a playlist that a player has is repeated after half a target duration, and a new one at once', (t) => {
  const [one, other] = [viewer(), viewer()];
  const repeats = new Repeats();
  t.is(repeats.pauseOf(one, 'full', 'a', 4, 1000), 0);
  repeats.note(one, 'full', 'a', 1000);
  t.is(repeats.pauseOf(one, 'full', 'a', 4, 1000), 2000);
  t.is(repeats.pauseOf(one, 'full', 'a', 4, 2500), 500);
  t.is(repeats.pauseOf(one, 'full', 'a', 4, 3000), 0);
  t.is(repeats.pauseOf(one, 'full', 'a', 4, 9000), 0);
  t.is(repeats.pauseOf(other, 'full', 'a', 4, 1000), 0, 'another player');
  t.is(repeats.pauseOf(one, 'legacy', 'a', 4, 1000), 0, 'another form');
  repeats.note(one, 'legacy', '1', 1100);
  t.is(repeats.pauseOf(one, 'full', 'a', 4, 1000), 2000);
  t.is(repeats.pauseOf(one, 'full', 'b', 4, 1000), 0, 'another state');
  repeats.note(other, 'full', 'b', 1200);
  t.is(repeats.pauseOf(other, 'full', 'b', 4, 1200), 2000);
  t.is(repeats.pauseOf(one, 'full', 'b', 4, 1200), 0);
  t.is(repeats.pauseOf(one, 'full', 'a', 4, 1200), 0, 'what is over is forgotten');
});
