import test from 'ava';
import { WrongCredentials } from '../../../src/api/wrong-credentials.ts';

const BURST = 20;
const REFILL_MS = 5000;

/** How many wrong credentials in a row are within the limit. */
function allowed(wrong: WrongCredentials, address: string, now = 0): number {
  let count = 0;
  while (wrong.count(address, now).waitMs === 0) if (++count > 1000) return Infinity;
  return count;
}

test('a burst, then one every five seconds, and the whole burst again after a while', (t) => {
  const wrong = new WrongCredentials();
  t.is(allowed(wrong, '203.0.113.1'), BURST);
  t.is(wrong.count('203.0.113.1', 0).waitMs, REFILL_MS);
  t.is(wrong.count('203.0.113.1', 4000).waitMs, 1000);
  t.is(allowed(wrong, '203.0.113.1', REFILL_MS), 1);
  t.is(allowed(wrong, '203.0.113.1', 10 * REFILL_MS), 9);
  t.is(allowed(wrong, '203.0.113.1', 1000 * REFILL_MS), BURST);
});

test('wrong credentials are counted by IPv4 address and by IPv6 /64', (t) => {
  const wrong = new WrongCredentials();
  const clients: [one: string, other: string, same: boolean][] = [
    ['203.0.113.1', '203.0.113.2', false],
    ['2001:db8::1', '2001:db8::ffff:1:2:3', true],
    ['2001:db8:0:1::1', '2001:0db8:0000:0001:ffff::', true],
    ['2001:db8:0:2::1', '2001:db8:0:3::1', false],
    ['::ffff:203.0.113.7', '203.0.113.7', true],
    ['::ffff:203.0.113.8', '::ffff:203.0.113.9', false],
    ['fe80::1%eth0', 'fe80::2', true],
    ['1::', '::1', false],
    ['unknown', 'hidden', false],
    ['x'.repeat(64), 'x'.repeat(10_000), true],
  ];
  for (const [one, other, same] of clients) {
    t.is(allowed(wrong, one), BURST, one);
    t.is(allowed(wrong, other), same ? 0 : BURST, other);
  }
});

test('a client with wrong credentials is reported once, until it has been quiet for long', (t) => {
  const wrong = new WrongCredentials();
  const news = (now: number) =>
    Array.from({ length: 30 }, () => wrong.count('203.0.113.1', now).isNews).filter(Boolean).length;
  t.is(news(0), 1);
  t.is(news(REFILL_MS), 0);
  t.is(news(3 * REFILL_MS), 0);
  t.is(news(3 * REFILL_MS + BURST * REFILL_MS), 1);
});

test('however many clients there are, no more than so many are remembered, those that came last', (t) => {
  const wrong = new WrongCredentials();
  const address = (n: number) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
  for (let n = 0; n < 10_000; n++) wrong.count(address(n), 0);
  t.is(allowed(wrong, address(0)), BURST - 1, 'remembered, and by that the one that came last');
  wrong.count('203.0.113.1', 0);
  t.is(allowed(wrong, address(0)), 0);
  t.is(allowed(wrong, address(1)), BURST, 'forgotten');
});
