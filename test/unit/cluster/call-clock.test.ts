import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { CallClock, NodeClocks, WINDOW_MS } from '../../../cluster/peer/call-clock.ts';
import { Nonces } from '../../../cluster/peer/nonces.ts';
import { Random } from '../../soak/random.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

type Node = Parameters<NodeClocks['timeOf']>[0];

test.serial('a call that is older than the window is too old, and stays so', async (t) => {
  virtualTime(t);
  const clock = new CallClock(() => Date.now());
  const { now } = clock;
  t.true(clock.accepts(now));
  t.true(clock.accepts(now - WINDOW_MS + 1));
  t.false(clock.accepts(now - WINDOW_MS - 1));
  await delay(WINDOW_MS + 1);
  t.false(clock.accepts(now));
});

test.serial('a call from the future sets the clock, and nothing sets it back', (t) => {
  virtualTime(t);
  const clock = new CallClock(() => Date.now());
  const { now } = clock;
  t.true(clock.accepts(now + 86_400_000));
  t.is(clock.now, now + 86_400_000);
  t.false(clock.accepts(now));
  t.is(clock.now, now + 86_400_000);
});

test.serial('no call is accepted twice, whatever the clocks of callers do', async (t) => {
  virtualTime(t);
  const random = new Random(7);
  const clock = new CallClock(() => Date.now());
  const nonces = new Nonces(2 * WINDOW_MS);
  const recorded: { readonly nonce: string; readonly time: number }[] = [];
  const accepted = new Set<string>();
  let setBy = 0;
  for (let step = 0; step < 3000; step++) {
    await delay(random.below(3000));
    if (random.chance(0.1)) setBy = random.below(120_000) - 60_000;
    // some callers have been told the time
    const base = random.chance(0.5) ? clock.now : Date.now() + setBy;
    const fresh = { nonce: String(step), time: base + random.below(4000) - 2000 };
    recorded.push(fresh);
    const old = random.pick(recorded);
    for (const { nonce, time } of [fresh, old, recorded.at(-2) ?? fresh]) {
      if (!clock.accepts(time) || nonces.use(nonce) !== undefined) continue;
      t.false(accepted.has(nonce), `call ${nonce} at step ${step}`);
      accepted.add(nonce);
    }
  }
  t.true(accepted.size > 300);
});

test.serial('the clock of an incarnation of a node goes on from its last answer', async (t) => {
  virtualTime(t);
  const clocks = new NodeClocks();
  const [life, next, any] = ['1', '2', ''].map((incarnation) => ({ id: 'a', incarnation })) as [Node, Node, Node];
  t.is(clocks.timeOf(life), undefined);
  t.true(clocks.learn(life, 1000));
  await delay(500);
  t.is(clocks.timeOf(life), 1500);
  t.is(clocks.timeOf(any), 1500);
  t.is(clocks.timeOf(next), undefined, 'another life may have another clock');
  t.true(clocks.learn(next, 90_000));
  t.is(clocks.timeOf(next), 90_000);
  t.is(clocks.timeOf({ id: 'b', incarnation: '1' }), undefined);
});

test.serial('the clock of a node that sends none is forgotten', (t) => {
  virtualTime(t);
  const clocks = new NodeClocks();
  const node = { id: 'a', incarnation: '1' };
  t.false(clocks.learn(node, undefined), 'it had been called at the time of the cluster');
  clocks.learn(node, 1000);
  t.true(clocks.learn({ ...node, incarnation: '' }, undefined));
  t.is(clocks.timeOf(node), undefined);
});
