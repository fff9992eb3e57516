import test from 'ava';
import { LayerTrials } from '../../../../src/publishers/webrtc/layer-trials.ts';

/** How long the top layer of three is not tried, after it was sent for so many seconds each time. */
function waits(seconds: readonly number[]): number[] {
  const trials = new LayerTrials(3);
  let now = 1_000_000;
  return seconds.map((lasted) => {
    trials.sent(2, false, now);
    now += lasted * 1000;
    trials.sent(0, true, now);
    const wait = trials.from(2) - now;
    now += wait;
    return wait / 1000;
  });
}

test('a layer that fails again and again is tried ever more rarely', (t) => {
  t.deepEqual(waits([2, 2, 2, 2, 2, 2]), [10, 20, 40, 80, 120, 120]);
});

test('a layer that lasted is tried again as soon as at first', (t) => {
  t.deepEqual(waits([2, 2, 60, 2, 2]), [10, 20, 10, 20, 40]);
});

test('only a layer that had to be left waits: neither lower layers, nor one that a viewer leaves', (t) => {
  const trials = new LayerTrials(3);
  trials.sent(2, false, 1000);
  trials.sent(1, false, 2000);
  t.is(trials.from(2), 0);
  trials.sent(0, true, 3000);
  t.deepEqual(
    [0, 1, 2].map((layer) => trials.from(layer)),
    [0, 13_000, 0],
  );
  trials.sent(1, true, 14_000);
  t.is(trials.from(0), 0);
});
