import test from 'ava';
import { CallClock, NodeClocks, WINDOW_MS } from '../../../cluster/peer/call-clock.ts';
import { Nonces } from '../../../cluster/peer/nonces.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test.serial('what is older than the window is too old, and stays so', async (t) => {
  virtualTime(t);
  const clock = new CallClock();
  const { now } = clock;
  t.true(clock.accepts(now));
  t.true(clock.accepts(now - WINDOW_MS + 1));
  t.false(clock.accepts(now - WINDOW_MS - 1));
  await delay(WINDOW_MS + 1);
  t.false(clock.accepts(now));
});

test.serial('a call from the future sets the clock, and nothing sets it back', (t) => {
  virtualTime(t);
  const clock = new CallClock();
  const { now } = clock;
  t.true(clock.accepts(now + 86_400_000));
  t.is(clock.now, now + 86_400_000);
  t.false(clock.accepts(now));
  t.is(clock.now, now + 86_400_000);
});

test.serial('whatever the clocks of callers do, no call is accepted twice', async (t) => {
  virtualTime(t);
  let seed = 7;
  const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  const clock = new CallClock();
  const nonces = new Nonces(2 * WINDOW_MS);
  const recorded: { readonly nonce: string; readonly time: number }[] = [];
  const accepted = new Set<string>();
  let setBy = 0;
  for (let step = 0; step < 3000; step++) {
    await delay(random() * 3000);
    if (random() < 0.1) setBy = (random() - 0.5) * 120_000;
    const fresh = { nonce: String(step), time: Date.now() + setBy + (random() - 0.5) * 4000 };
    recorded.push(fresh);
    const old = recorded[Math.floor(random() * recorded.length)] ?? fresh;
    for (const { nonce, time } of [fresh, old, recorded.at(-2) ?? fresh]) {
      if (!clock.accepts(time) || nonces.use(nonce) !== undefined) continue;
      t.false(accepted.has(nonce), `call ${nonce} at step ${step}`);
      accepted.add(nonce);
    }
  }
  t.true(accepted.size > 300);
});

test.serial('the clock of a node goes on from what it has told last', async (t) => {
  virtualTime(t);
  const clocks = new NodeClocks();
  t.is(clocks.timeOf('a'), undefined);
  clocks.learn('a', 1000);
  await delay(500);
  t.is(clocks.timeOf('a'), 1500);
  clocks.learn('a', 90_000);
  t.is(clocks.timeOf('a'), 90_000);
  t.is(clocks.timeOf('b'), undefined);
});
