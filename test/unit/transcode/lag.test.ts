import test from 'ava';
import { Lag } from '../../../src/transcode/lag.ts';

/** At which seconds it is told that a lag lasts, of one measured every second. */
function told(lags: readonly number[]): number[] {
  const lag = new Lag();
  return lags.flatMap((seconds, at) => (lag.isLasting(seconds, at * 1000) ? [at] : []));
}

test('a small lag, or one that shrinks, is no matter', (t) => {
  t.deepEqual(told([0, 1, 3, 2, 3, 3, 3, 3, 3, 3, 3]), []);
  t.deepEqual(told([20, 18, 17, 17, 16, 15, 12, 12, 12, 11, 8, 5, 3, 1]), []);
});

test('a lag that stays or grows lasts, and so again after a while', (t) => {
  t.deepEqual(told([4, 4, 4, 4, 4, 4]), [4]);
  t.deepEqual(told([5, 6, 7, 8, 9, 4, 5, 6, 7, 8]), [4, 9]);
  t.deepEqual(told([9, 8, 7, 7, 8, 9, 10]), [6]);
});
