import test from 'ava';
import { RelayClock } from '../../../src/relay/relay-clock.ts';

const VIDEO = { num: 1, den: 90_000 };
const SOUND = { num: 1, den: 44_100 };

const picture = (clock: RelayClock, time: number, now = 0) => clock.next(0, time, VIDEO, VIDEO, 0, now);
const sound = (clock: RelayClock, time: number, now = 0) => clock.next(1, time, SOUND, SOUND, 0, now);

test('the first run of a stream keeps its times', (t) => {
  const clock = new RelayClock();
  clock.restart('first');
  t.deepEqual([picture(clock, 900_000), sound(clock, 439_000)], [900_000, 439_000]);
  t.false(clock.precedes(2, 0, VIDEO));
  t.like(clock.run, { id: 'first' });
  t.is(clock.run?.shift(VIDEO), 0);
});

test('a new connection goes on after what has come of the same run', (t) => {
  const clock = new RelayClock();
  clock.restart('first');
  for (const time of [0, 3000, 6000, 9000]) picture(clock, time);
  sound(clock, 2048);
  clock.restart('first');
  t.deepEqual(
    [3000, 6000, 9000, 12_000, 15_000].map((time) => picture(clock, time)),
    [undefined, undefined, undefined, 12_000, 15_000],
  );
  t.deepEqual([sound(clock, 1024), sound(clock, 2048), sound(clock, 3072)], [undefined, undefined, 3072]);
  t.is(clock.next(2, 4000, VIDEO, VIDEO, 0, 0), 4000, 'a track that had not come');
});

test('packets are not taken for a repetition without another connection', (t) => {
  const clock = new RelayClock();
  clock.restart('first');
  t.deepEqual([picture(clock, 3000), picture(clock, 3000), picture(clock, 3000)], [3000, 3001, 3002]);
});

test('a new run goes on as long after as it took, and says by how much its times are shifted', (t) => {
  const clock = new RelayClock();
  clock.restart('first');
  picture(clock, 90_000, 1000);
  clock.restart('second');
  t.is(picture(clock, 40_000_000, 4000), 90_000 + 270_000);
  const { run } = clock;
  t.is(run?.id, 'second');
  t.is(40_000_000 + (run?.shift(VIDEO) ?? 0), 360_000);
  const time = sound(clock, 19_600_000, 4000);
  t.is(time, 19_600_000 + (run?.shift(SOUND) ?? 0), 'a whole number of ticks in each timebase');
  t.true(clock.precedes(2, 39_000_000, VIDEO));
  t.false(clock.precedes(2, 39_990_000, VIDEO));
});

test('a new run that follows at once never goes back, whatever begins it', (t) => {
  const clock = new RelayClock();
  let last = -1;
  for (let round = 0; round < 5; round++) {
    clock.restart(String(round));
    for (const time of [90_000, 93_000]) {
      const next = picture(clock, round * 1e6 + time) ?? -1;
      t.true(next > last);
      last = next;
    }
    const early = round * 44_100 + 22_100;
    if (!clock.precedes(1, early, SOUND)) t.true((sound(clock, early) ?? -1) >= 0);
  }
});

test('a run without a name is no other', (t) => {
  const clock = new RelayClock();
  clock.restart(undefined);
  picture(clock, 9000, 0);
  clock.restart(undefined);
  t.true((picture(clock, 9000, 0) ?? 0) > 9000);
});
