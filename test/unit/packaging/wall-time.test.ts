import test from 'ava';
import { WallTime } from '../../../src/packaging/wall-time.ts';

const START = 1_700_000_000_000;

/** A clock whose offset can be set. */
class Clock {
  offset = START;
  at(media: number): number {
    return this.offset + media * 1000;
  }
}

test('a time is decided when it is first asked for, and stays', (t) => {
  const clock = new Clock();
  const time = new WallTime(clock, 10, START + 10_000);
  clock.offset = START - 800;
  t.is(time.at(10), START + 9200);
  clock.offset = START - 2000;
  t.is(time.at(10), START + 9200);
  t.is(time.at(10.5), START + 9700);
  t.is(time.at(9), START + 8200);
});

test('as long as the clock tells nothing, and where it tells a time to come, it is now', (t) => {
  const clock = new Clock();
  clock.offset = Infinity;
  t.is(new WallTime(clock, 10, START).at(10), START);
  clock.offset = START + 3_600_000;
  t.is(new WallTime(clock, 10, START).at(10), START);
});

test('times of successive cuts go on with the media, and are in order when the clock goes back', (t) => {
  const clock = new Clock();
  const first = new WallTime(clock, 10, START + 10_000);
  const second = new WallTime(clock, 12, START + 12_000, first);
  t.is(second.at(12) - first.at(10), 2000);
  clock.offset -= 5000;
  const third = new WallTime(clock, 14, START + 14_000, second);
  t.is(third.at(14) - second.at(12), 1);
  const fourth = new WallTime(clock, 16, START + 16_000, third);
  const fifth = new WallTime(clock, 18, START + 18_000, fourth);
  t.is(fourth.at(16) - third.at(14), 1);
  t.is(fifth.at(18), START + 13_000);
});

test('a clock that was set back by far is followed', (t) => {
  const clock = new Clock();
  const first = new WallTime(clock, 10, START + 10_000);
  clock.offset -= 3_600_000;
  const second = new WallTime(clock, 12, START - 3_588_000, first);
  t.is(second.at(12), START + 12_000 - 3_600_000);
});
