import test from 'ava';
import { MediaClock } from '../../../../src/publishers/webrtc/media-clock.ts';

const MS = { num: 1, den: 1000 };

test('a late track does not move the clock of one that is on time; a jump of all does', (t) => {
  const clock = new MediaClock();
  t.is(clock.wallMs(0, MS, 100_000), 100_000);
  for (let at = 1000; at <= 10_000; at += 1000) {
    t.is(clock.wallMs(at, MS, 100_000 + at), 100_000 + at);
    t.is(clock.wallMs(at - 3000, MS, 100_000 + at), 100_000 + at - 3000, 'an encoder that is behind');
  }
  t.is(clock.wallMs(60_000, MS, 111_000), 111_000, 'a jump ahead counts at once');
  t.is(clock.wallMs(61_000, MS, 117_000), 117_000, 'a stop of the source too, when all are late');
});
