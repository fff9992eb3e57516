import test from 'ava';
import { StallWatch } from '../../../src/publishers/stall-watch.ts';

const LONG_MS = 30_001;

test('a viewer is stalled that takes nothing of what waits for too long', (t) => {
  const watch = new StallWatch();
  t.false(watch.isStalled(performance.now() + LONG_MS, 0), 'nothing waits');
  watch.full(1000);
  watch.full(2000);
  const now = performance.now();
  t.false(watch.isStalled(now, 1000));
  t.true(watch.isStalled(now + LONG_MS, 1000));
  t.true(watch.isStalled(now + LONG_MS, 1500), 'more that waits is nothing taken');
});

test('a viewer that takes something has its time anew', (t) => {
  const watch = new StallWatch();
  watch.full(1000);
  const now = performance.now() + LONG_MS;
  t.false(watch.isStalled(now, 999));
  t.false(watch.isStalled(now + 1000, 999));
  t.true(watch.isStalled(now + LONG_MS, 999));
  watch.taken();
  t.false(watch.isStalled(now + LONG_MS, 999));
});
