import test from 'ava';
import { nominalRate } from '../../../../../src/publishers/hls/master/stream-inf.ts';

for (const [measured, rate] of [
  [30.003, 30],
  [29.98, 30_000 / 1001],
  [29.95, 30_000 / 1001],
  [29.99, 30],
  [24.9, 25],
  [23.97, 24_000 / 1001],
  [59.94, 60_000 / 1001],
  [60.02, 60],
  [29.5, 29.5],
  [12.4, 12.4],
  [15, 15],
  [0, 0],
] as const) {
  test(`a measured frame rate of ${measured} is declared as ${rate.toFixed(3)}`, (t) => {
    t.is(nominalRate(measured), rate);
  });
}
