import test from 'ava';
import { DecodeTimes } from '../../../../src/providers/rtp/decode-times.ts';
import { seeded } from '../../codecs/vectors.ts';

/** Pictures by number, in the order of decoding, 3600 apart. */
function run(times: DecodeTimes, order: readonly number[]): number[] {
  return order.map((picture) => times.next(picture * 3600) / 3600);
}

test('pictures in order are decoded when they are shown', (t) => {
  t.deepEqual(run(new DecodeTimes(), [5, 6, 7, 9, 10]), [5, 6, 7, 9, 10]);
});

test('decode times are right from the first frame where the configuration describes the order', (t) => {
  const times = new DecodeTimes();
  times.expect(1);
  t.deepEqual(run(times, [0, 3, 1, 2, 6, 4, 5, 9, 7, 8]), [-0.5, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
  const pyramid = new DecodeTimes();
  pyramid.expect(2);
  t.deepEqual(run(pyramid, [0, 4, 2, 1, 3, 8, 6, 5, 7]), [-1, -0.5, 0, 1, 2, 3, 4, 5, 6]);
});

test('decode times are right from the first missing frame with its step on', (t) => {
  const known = new DecodeTimes();
  known.expect(2, 3600);
  t.deepEqual(run(known, [0, 3, 2, 1, 6, 5, 4]), [-2, -1, 0, 1, 2, 3, 4]);
  // one after the other at first; then as many come between as `step` tells
  const grown = new DecodeTimes();
  const order = [0, 1, 2, 5, 4, 3, 8, 7, 6, 12, 10, 9, 11, 16, 14, 13, 15];
  let latest = -1;
  const decoded = order.map((picture) => {
    const step = picture - latest;
    latest = Math.max(latest, picture);
    return grown.next(picture * 3600, step, step > 1 ? 2 : 0) / 3600;
  });
  for (const [i, picture] of order.entries()) {
    t.true((decoded[i] as number) <= picture, `${picture}: ${decoded[i]}`);
    if (i > 0) t.true((decoded[i] as number) > (decoded[i - 1] as number));
  }
  t.deepEqual(decoded.slice(0, 6), [0, 1, 2, 2 + 1 / 3, 2 + 2 / 3, 3]);
  t.deepEqual(
    decoded.slice(6),
    decoded.slice(6).map((_, i) => 4 + i),
  );
});

test('decode times of an unknown order are right after some frames', (t) => {
  const times = new DecodeTimes();
  times.expect(undefined);
  const order = [0, 4, 2, 1, 3, 8, 6, 5, 7, 12, 10, 9, 11, 16, 14, 13, 15];
  const decoded = run(times, order);
  order
    .slice(6)
    .forEach((picture, i) => t.true((decoded[i + 6] as number) <= picture, `${picture}: ${decoded[i + 6]}`));
  t.deepEqual(decoded.slice(8), [5, 6, 7, 8, 9, 10, 11, 12, 13]);
});

test('each decode time is later than the one before, whatever comes', (t) => {
  const random = seeded(3);
  for (let run = 0; run < 50; run++) {
    const times = new DecodeTimes();
    times.expect(Math.floor(random() * 20));
    let last = -Infinity;
    for (let i = 0; i < 200; i++) {
      const next = times.next(Math.floor((i + random() * 30) * 3600));
      t.true(next > last);
      last = next;
    }
  }
});

test('decode times begin anew', (t) => {
  const times = new DecodeTimes();
  run(times, [100, 101]);
  times.restart();
  t.deepEqual(run(times, [3, 4]), [3, 4]);
});
