import test from 'ava';
import { HangWatch } from '../../../src/webrtc/hang-watch.ts';

/** Check after which it is hung; Infinity: not within 50. */
function hungAt(answers: (at: number) => boolean, isRunnable: boolean | undefined, cpuSeconds: number): number {
  const watch = new HangWatch();
  for (let at = 1; at <= 50; at++) {
    const state = isRunnable === undefined ? undefined : { isRunnable, cpuSeconds: 7 + at * cpuSeconds };
    if (watch.isHung(answers(at), state)) return at;
  }
  return Infinity;
}

test('a process that is blocked or stopped, or runs in a loop without an answer, is hung', (t) => {
  t.is(
    hungAt(() => false, false, 0),
    5,
  );
  t.is(
    hungAt(() => false, true, 2),
    5,
  );
  t.is(
    hungAt(() => false, undefined, 0),
    5,
    'without /proc',
  );
});

test('a process that waits for a CPU is not hung', (t) => {
  t.is(
    hungAt(() => false, true, 0.05),
    Infinity,
  );
  t.is(
    hungAt((at) => at % 5 === 0, false, 0),
    Infinity,
    'nor one that answers late',
  );
});
