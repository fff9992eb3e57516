import test from 'ava';
import { MediaClock } from '../../../../src/protocols/rtp/media-clock.ts';

const MS = { num: 1, den: 1000 };

test('a late track does not move the clock of one that is on time; a jump of all does', (t) => {
  const clock = new MediaClock();
  t.is(clock.wallMs(0, MS, 100_000), 99_000);
  for (let at = 1000; at <= 10_000; at += 1000) {
    t.is(clock.wallMs(at, MS, 100_000 + at), 99_000 + at);
    t.is(clock.wallMs(at - 3000, MS, 100_000 + at), 99_000 + at - 3000, 'an encoder that is behind');
  }
  t.is(clock.wallMs(60_000, MS, 111_000), 110_000, 'a jump ahead counts at once');
  t.is(clock.wallMs(61_000, MS, 117_000), 116_000, 'a stop of the source too, when all are late');
});

test('frames are never dated later than they came, though the first came late in a burst', (t) => {
  const clock = new MediaClock();
  const first = clock.wallMs(0, MS, 100_000);
  const second = clock.wallMs(400, MS, 100_100);
  t.is(second - first, 400);
  t.true(second < 100_100);
});
