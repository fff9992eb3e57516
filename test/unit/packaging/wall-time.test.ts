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

test('the wall time is the current time where the clock is unknown or in the future', (t) => {
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

test('times go on with the media, though the source is late by little, and follow it slowly', (t) => {
  const clock = new Clock();
  let cut = new WallTime(clock, 0, START);
  const next = (media: number): number => {
    const before = cut;
    cut = new WallTime(clock, media, START + 3_600_000, before);
    return cut.at(media) - before.at(media);
  };
  t.is(cut.at(0), START);
  clock.offset += 500;
  for (let media = 2; media <= 100; media += 2) t.is(next(media), 10);
  t.is(next(102), 0);
  t.is(cut.at(102), START + 102_500, 'until it is no longer late');
  clock.offset += 1500;
  t.is(next(104), 10);
  clock.offset -= 1500;
  t.is(next(106), -10, 'it has caught up');
  clock.offset += 5000;
  t.is(next(108), 5000, 'by much more it is another time');
});

test('a clock that was set back by far is followed', (t) => {
  const clock = new Clock();
  const first = new WallTime(clock, 10, START + 10_000);
  clock.offset -= 3_600_000;
  const second = new WallTime(clock, 12, START - 3_588_000, first);
  t.is(second.at(12), START + 12_000 - 3_600_000);
});
