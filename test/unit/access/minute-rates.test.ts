import { mock } from 'node:test';
import test from 'ava';
import { MinuteRates } from '../../../src/access/minute-rates.ts';

test.afterEach.always(() => mock.restoreAll());

/** Rates by a clock that the test sets. */
function rates() {
  let now = 5_000_000;
  mock.method(performance, 'now', () => now);
  const counted = new MinuteRates();
  return { counted, pass: (seconds: number) => void (now += seconds * 1000) };
}

test.serial('connections count in full for a minute, and less and less in the next', (t) => {
  const { counted, pass } = rates();
  for (let i = 0; i < 10; i++) counted.add('a');
  counted.add('b');
  t.is(counted.of('a'), 10);
  pass(59);
  t.is(counted.of('a'), 10);
  pass(31);
  t.is(counted.of('a'), 5);
  counted.add('a');
  t.is(counted.of('a'), 6);
  pass(30);
  t.is(counted.of('a'), 1);
  pass(120);
  t.is(counted.of('a'), 0);
  t.is(counted.of('b'), 0);
});

test.serial('the number of remembered addresses is bounded', (t) => {
  const { counted } = rates();
  for (let i = 0; i < 50_010; i++) counted.add(`key ${i}`);
  t.is(counted.of('key 0'), 1);
  t.is(counted.of('key 50005'), 0);
  counted.add('key 0');
  t.is(counted.of('key 0'), 2);
});
