import test from 'ava';
import { WaitingLine } from '../../../src/core/waiting-line.ts';
import { seeded } from '../codecs/vectors.ts';

/** Milliseconds, and how many waited for so long, of what leaves. */
function taken(line: WaitingLine, count: number, now: number): [number, number][] {
  const all: [number, number][] = [];
  line.take(count, now, (milliseconds, some) => all.push([milliseconds, some]));
  return all;
}

test('the oldest leave first, each after its own time', (t) => {
  const line = new WaitingLine();
  line.add(2, 100);
  line.add(1, 101);
  line.add(3, 150);
  t.is(line.size, 6);
  t.deepEqual(taken(line, 4, 200), [
    [100, 3],
    [50, 1],
  ]);
  t.deepEqual(taken(line, 9, 250), [[100, 2]]);
  t.is(line.size, 0);
  t.deepEqual(taken(line, 1, 250), []);
});

test('a line that grows for ever keeps a limited memory, and nearly its times', (t) => {
  const line = new WaitingLine();
  for (let now = 0; now < 100_000; now += 10) line.add(1, now);
  const batches: number[] = [];
  line.each(100_000, (milliseconds) => batches.push(milliseconds));
  t.true(batches.length <= 256);
  t.true(batches.every((milliseconds, at) => at === 0 || milliseconds < (batches[at - 1] as number)));
  t.is(line.size, 10_000);
  t.is(batches[0], 100_000);
});

test('what is taken and what waits are all that came', (t) => {
  const random = seeded(3);
  const line = new WaitingLine();
  let [came, left] = [0, 0];
  for (let now = 0; now < 5000; now++) {
    const count = Math.floor(random() * 4);
    line.add(count, now);
    came += count;
    for (const [milliseconds, some] of taken(line, Math.floor(random() * 4), now)) {
      t.true(milliseconds >= 0);
      left += some;
    }
    t.is(line.size, came - left);
  }
  line.clear();
  t.is(line.size, 0);
});
