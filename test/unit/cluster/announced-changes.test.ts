import test, { type ExecutionContext } from 'ava';
import { openHeartbeat } from '../../support/cluster/heartbeat.ts';
import { until } from '../../support/time/until.ts';

/** A connected node. */
async function open(t: ExecutionContext, rank = 0) {
  const opened = openHeartbeat(t, { rank });
  await opened.heartbeat.beat();
  opened.asked.pulls = 0;
  return opened;
}

test('a change that follows what is known is taken as it is', async (t) => {
  const { asked, hear, keys, claim } = await open(t);
  hear(claim('second'));
  t.deepEqual(keys(), ['first', 'second']);
  t.is(asked.pulls, 0);
});

test('a change that is announced while an answer is on its way waits for it, and needs no other', async (t) => {
  const { heartbeat, asked, pull, hear, keys, claim, hold, answer } = await open(t);
  hold();
  const included = claim('second');
  const pulled = pull();
  await until('Redis is asked', () => asked.pulls === 1);
  hear(included);
  hear(claim('third'));
  t.deepEqual(keys(), ['first']);
  answer();
  await pulled;
  t.deepEqual(keys(), ['first', 'second', 'third']);
  await heartbeat.close();
  t.is(asked.pulls, 1);
});

test('a change that is announced before a beat that brings nodes is known after it', async (t) => {
  const { heartbeat, asked, hear, keys, claim, hold, answer } = await open(t);
  hold();
  heartbeat.wake();
  hear(claim('second'));
  t.deepEqual(keys(), ['first'], 'the node that has it may be a new one');
  const beats = asked.beats;
  const beaten = heartbeat.beat();
  await until('Redis is asked', () => asked.beats > beats);
  t.deepEqual(keys(), ['first']);
  answer();
  await beaten;
  t.deepEqual(keys(), ['first', 'second']);
});

test('changes that no message announced are fetched, once for all messages after them', async (t) => {
  const { heartbeat, asked, hear, keys, claim } = await open(t, 20);
  claim('missed');
  hear(claim('third'));
  hear(claim('fourth'));
  t.is(asked.pulls, 0, 'it waits for its turn among the nodes');
  await until('it is known', () => keys().length === 4);
  hear(claim('fifth'));
  t.is(keys().length, 5);
  await heartbeat.close();
  t.is(asked.pulls, 1);
});

test('a reader that waits for missed changes asks for them at once', async (t) => {
  const { heartbeat, asked, pull, hear, keys, claim } = await open(t, 1e9);
  claim('missed');
  hear(claim('third'));
  await pull();
  t.deepEqual(keys(), ['first', 'missed', 'third']);
  await heartbeat.close();
  t.is(asked.pulls, 1);
});
