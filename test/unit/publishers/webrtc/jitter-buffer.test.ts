import test from 'ava';
import { jitterBuffer } from '../../../../src/publishers/webrtc/jitter-buffer.ts';
import { video } from '../../core/support.ts';

/** Turns of frames of 25 a second, each so many milliseconds late, relative to when they were taken. */
function holds(lateness: (i: number) => number, count = 400, from = 0, schedule = jitterBuffer()): number[] {
  return Array.from({ length: count }, (_, i) => {
    const taken = from + i * 40;
    return schedule(video(taken / 1000, i === 0), 1e6 + taken + lateness(i)) - 1e6 - taken;
  });
}

test('evenly arriving frames are hardly held', (t) => {
  t.true(holds(() => 0).every((hold) => Math.abs(hold - 20) < 1e-6));
});

test('unevenly arriving frames leave evenly, as late as the latest come', (t) => {
  const turns = holds((i) => (i * 37) % 101).slice(110);
  t.true(
    turns.every((turn) => Math.abs(turn - 100) < 1),
    `${Math.min(...turns)} to ${Math.max(...turns)}`,
  );
});

test('a single late frame is soon forgotten, little by little', (t) => {
  const turns = holds((i) => (i === 50 ? 200 : 0), 1000);
  t.true((turns[49] as number) < 21);
  t.true(Math.abs((turns[50] as number) - 200) < 1);
  t.true(
    turns.slice(1).every((turn, i) => i + 1 === 50 || (turns[i] as number) - turn < 1),
    'never by a leap',
  );
  t.true((turns.at(-1) as number) < 21);
});

test('no frame is held longer than half a second', (t) => {
  t.true(holds((i) => (i % 10) * 150).every((turn) => turn < 500.001));
});

test('frames after a long pause do not depend on what came before it', (t) => {
  const schedule = jitterBuffer();
  holds((i) => (i % 5) * 50, 100, 0, schedule);
  const hour = 3_600_000;
  const turn = schedule(video(hour / 1000, true), 1e6 + hour + 1500) - 1e6 - hour - 1500;
  t.true(Math.abs(turn - 20) < 210, String(turn));
  t.true(Math.abs(schedule(video((hour + 40) / 1000, false), 1e6 + hour + 1540) - 1e6 - hour - 1540 - turn) < 1);
});

test('a jump of the source begins anew', (t) => {
  const schedule = jitterBuffer();
  holds(() => 0, 100, 0, schedule);
  for (const since of [0, 40]) {
    const at = 1e6 + 4000 + since;
    t.true(Math.abs(schedule(video(5000 + since / 1000, true), at) - at - 20) < 1);
  }
});
