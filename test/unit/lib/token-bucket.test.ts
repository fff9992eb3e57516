import test from 'ava';
import { TokenBucket } from '../../../src/lib/token-bucket.ts';

const SIZE = 5;
const REFILL_MS = 10;

function takeAll(bucket: TokenBucket, now: number): number {
  let taken = 0;
  while (taken <= SIZE && bucket.take(now)) taken++;
  return taken;
}

test('a bucket starts full and refills one token at a time, never beyond its size', (t) => {
  const bucket = new TokenBucket(SIZE, REFILL_MS);
  t.true(bucket.isFull(1000));
  t.is(takeAll(bucket, 1000), SIZE);
  t.is(takeAll(bucket, 1009), 0);
  t.is(takeAll(bucket, 1010), 1);
  t.is(takeAll(bucket, 1035), 2);
  t.is(takeAll(bucket, 1040), 1, 'parts of a token are kept');
  t.is(takeAll(bucket, 1_000_000), SIZE);
});

test('the time until the next token is known, and asking for it takes none', (t) => {
  const bucket = new TokenBucket(SIZE, REFILL_MS);
  t.is(bucket.waitMs(0), 0);
  takeAll(bucket, 0);
  t.is(bucket.waitMs(0), REFILL_MS);
  t.is(bucket.waitMs(4), 6);
  t.is(bucket.waitMs(10), 0);
  t.is(takeAll(bucket, 10), 1);
  t.false(bucket.isFull(59));
  t.true(bucket.isFull(60));
});

test('a clock that goes backwards adds no tokens', (t) => {
  const bucket = new TokenBucket(SIZE, REFILL_MS);
  takeAll(bucket, 100);
  t.is(takeAll(bucket, 50), 0);
  t.is(takeAll(bucket, 110), 1);
});

test('a full bucket has all of its tokens, whatever the clock says and the time between them is', (t) => {
  for (let now = 0.1; now < 1e9; now *= 3.7) {
    const bucket = new TokenBucket(30, 1000 / 30);
    let taken = 0;
    while (bucket.take(now)) taken++;
    t.is(taken, 30, `at ${now}`);
  }
});
