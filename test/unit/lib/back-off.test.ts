import test from 'ava';
import { BackOff } from '../../../src/lib/back-off.ts';

function pauses(backOff: BackOff, count: number): number[] {
  return Array.from({ length: count }, () => backOff.next());
}

test('the first try is at once, pauses double up to the longest one, and a success begins anew', (t) => {
  const backOff = new BackOff(1500);
  t.deepEqual(pauses(backOff, 6), [0, 250, 500, 1000, 1500, 1500]);
  backOff.reset();
  t.deepEqual(pauses(backOff, 2), [0, 250]);
});

test('a pause before the first try can be configured', (t) => {
  const backOff = new BackOff(10_000, 500);
  t.deepEqual(pauses(backOff, 3), [500, 1000, 2000]);
  backOff.reset();
  t.is(backOff.next(), 500);
  t.deepEqual(pauses(new BackOff(10_000, 100), 3), [100, 250, 500]);
});
