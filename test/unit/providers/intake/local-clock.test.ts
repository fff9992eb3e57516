import test from 'ava';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';

const VIDEO = { num: 1, den: 90_000 };
const SOUND = { num: 1, den: 48_000 };

test('times of one source keep their distances, whatever they begin with', (t) => {
  const clock = new LocalClock();
  const start = 5_000_000_000;
  const times = [0, 3000, 6000, 9003].map((dts) => clock.next(0, start + dts, VIDEO, VIDEO, 0, 0));
  t.deepEqual(
    times.map((time) => time - (times[0] ?? 0)),
    [0, 3000, 6000, 9003],
  );
  t.true((times[0] ?? -1) >= 0 && (times[0] ?? Infinity) < 90_000);
});

test('packets that a provider kept for a new reader keep their distances, though they come at once', (t) => {
  const clock = new LocalClock();
  const times = Array.from({ length: 40 }, (_, i) => {
    return clock.next(0, i * 270_000, VIDEO, VIDEO, 0, 1000 + (i < 10 ? i : i * 3000));
  });
  times.forEach((time, i) => t.is(time - (times[0] as number), i * 270_000));
});

test('a track that begins earlier than the first packet keeps its place', (t) => {
  const clock = new LocalClock();
  const video = clock.next(0, 900_000, VIDEO, VIDEO, 0, 0);
  const sound = clock.next(1, 9.8 * 48_000, SOUND, SOUND, 0, 0);
  t.is(Math.round((video / 90_000 - sound / 48_000) * 1000), 200);
});

test('a start before the beginning is detected of a track that comes late, and of none that has begun', (t) => {
  const clock = new LocalClock();
  t.false(clock.precedes(1, 0, SOUND));
  clock.next(0, 20 * 90_000, VIDEO, VIDEO, 0, 0);
  t.deepEqual(
    [16, 19.4, 19.6].map((second) => clock.precedes(1, second * 48_000, SOUND)),
    [true, true, false],
  );
  t.false(clock.precedes(1, 2 * 48_000, SOUND), 'on a clock of its own');
  clock.next(1, 19.6 * 48_000, SOUND, SOUND, 0, 0);
  t.false(clock.precedes(1, 16 * 48_000, SOUND));
  const kept = new LocalClock(true);
  kept.next(0, 20 * 90_000, VIDEO, VIDEO, 0, 0);
  t.false(kept.precedes(1, 16 * 48_000, SOUND));
});

test('a new connection goes on as long after the former as it took, with all tracks in step', (t) => {
  const clock = new LocalClock();
  const last = clock.next(0, 70_000_000, VIDEO, VIDEO, 0, 1000);
  clock.restart();
  const video = clock.next(0, 12, VIDEO, VIDEO, 0, 4000);
  const sound = clock.next(1, 48_000, SOUND, SOUND, 0, 4010);
  t.is(video - last, 270_000);
  t.is(Math.round((sound / 48_000 - video / 90_000) * 100), 100);
});

test('a connection that follows at once never goes back', (t) => {
  const clock = new LocalClock();
  let last = -1;
  for (let round = 0; round < 5; round++) {
    clock.restart();
    for (const time of [900, 0, 3600]) {
      const next = clock.next(0, round * 1e9 + time, VIDEO, VIDEO, 0, 0);
      t.true(next > last);
      last = next;
    }
  }
});

test('times of the first source are its own where they are kept, and go on behind them', (t) => {
  const clock = new LocalClock(true);
  clock.restart();
  t.true(clock.keepsTimes);
  t.is(clock.next(0, 900_000, VIDEO, VIDEO, 0, 0), 900_000);
  t.is(clock.next(1, 9.8 * 48_000, SOUND, SOUND, 0, 0), 470_400);
  t.false(clock.keepsTimes);
  clock.restart();
  t.is(clock.next(0, 12, VIDEO, VIDEO, 0, 3000), 900_000 + 270_000);
});
