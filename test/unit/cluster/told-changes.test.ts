import { EventEmitter } from 'node:events';
import test from 'ava';
import { ClaimTable } from '../../../cluster/redis/claim-table.ts';
import { Heartbeat, type HeartbeatOptions } from '../../../cluster/redis/heartbeat.ts';
import type { Beat } from '../../../cluster/redis/nodes.ts';
import { SCRIPTS } from '../../../cluster/redis/scripts.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';
import { until } from '../../support/time/until.ts';

const record = (fence: number): string => `${fence} token-${fence} a life continue 0 null`;
const told = (revision: number, key: string): string => `claim ${revision - 1} ${revision} ${record(revision)}\n${key}`;

/** A connected node, and a Redis whose answers come when the test says. */
async function open(rank = 0) {
  /** As Redis has them: the claim of each revision. */
  const claims = ['first'];
  const asked = { pulls: 0, beats: 0 };
  const held: (() => void)[] = [];
  let holds = false;
  const answered = <T>(answer: T): Promise<T> =>
    new Promise((resolve) => {
      if (holds) held.push(() => resolve(answer));
      else resolve(answer);
    });
  const table = new ClaimTable(
    () => {},
    (error) => {
      throw error;
    },
  );
  const nodes = {
    rank,
    draining: false,
    beat: () => {
      asked.beats += 1;
      const beat: Partial<Beat> = {
        sentAt: performance.now(),
        basis: '1:run::',
        run: 'run',
        replaced: false,
        buried: false,
        epoch: 1,
        open: true,
        recovery: undefined,
        wanted: false,
        claimsRevision: claims.length,
        configRevision: 0,
        nodesChanged: false,
        asks: [],
        nextSilentMs: Infinity,
      };
      return answered(beat);
    },
  };
  const connection = {
    answeredAt: 0,
    probe: () => {},
    run: (script: unknown, args: readonly unknown[]) => {
      if (script !== SCRIPTS.pull) throw new Error('what is this?');
      asked.pulls += 1;
      const since = Number(args[1]);
      const entries = claims.slice(since).flatMap((key, at) => [key, record(since + at + 1)]);
      return answered(['1', 1, [String(claims.length), 'changed', entries, ''], ['0', 0, []], '']);
    },
  };
  const heartbeat = new Heartbeat({
    connection,
    nodes,
    table,
    timing: timingOf({ beat: 1e6, command: 1 }),
    events: new EventEmitter(),
    leases: { highest: 0, remade: 0, atStake: false, see: () => {}, expectBeat: () => async () => {} },
    config: { version: { epoch: 0, revision: 0 }, since: 0, seen: 0, apply: () => {} },
    outage: { begin: () => {}, end: () => {} },
    onAtStake: () => {},
    onAsk: () => {},
    onConfirmed: () => {},
    onBuried: () => {},
    onBeat: () => {},
    onFault: (error: Error) => {
      throw error;
    },
  } as unknown as HeartbeatOptions);
  await heartbeat.beat();
  asked.pulls = 0;
  return {
    heartbeat,
    asked,
    keys: (): string[] => [...table.list('').keys()],
    /** A claim is made. @returns the message of it */
    claim(key: string): string {
      claims.push(key);
      return told(claims.length, key);
    },
    /** Answers wait from now on, as they are when they are asked for. */
    hold: () => void (holds = true),
    answer(): void {
      holds = false;
      held.splice(0).forEach((resolve) => resolve());
    },
  };
}

test('a change that follows what is known is taken as it is', async (t) => {
  const { heartbeat, asked, keys, claim } = await open();
  heartbeat.hear(claim('second'));
  t.deepEqual(keys(), ['first', 'second']);
  t.is(asked.pulls, 0);
});

test('what is told while an answer is on its way waits for it, and needs no other', async (t) => {
  const { heartbeat, asked, keys, claim, hold, answer } = await open();
  hold();
  const included = claim('second');
  const pulled = heartbeat.pull();
  await until('Redis is asked', () => asked.pulls === 1);
  heartbeat.hear(included);
  heartbeat.hear(claim('third'));
  t.deepEqual(keys(), ['first']);
  answer();
  await pulled;
  t.deepEqual(keys(), ['first', 'second', 'third']);
  await heartbeat.close();
  t.is(asked.pulls, 1);
});

test('what is told before a beat that brings nodes is known after it', async (t) => {
  const { heartbeat, asked, keys, claim, hold, answer } = await open();
  hold();
  heartbeat.wake();
  heartbeat.hear(claim('second'));
  t.deepEqual(keys(), ['first'], 'the node that has it may be a new one');
  const beats = asked.beats;
  const beaten = heartbeat.beat();
  await until('Redis is asked', () => asked.beats > beats);
  t.deepEqual(keys(), ['first']);
  answer();
  await beaten;
  t.deepEqual(keys(), ['first', 'second']);
});

test('what a message has missed is fetched, once for all messages after it', async (t) => {
  const { heartbeat, asked, keys, claim } = await open(20);
  claim('missed');
  heartbeat.hear(claim('third'));
  heartbeat.hear(claim('fourth'));
  t.is(asked.pulls, 0, 'it waits for its turn among the nodes');
  await until('it is known', () => keys().length === 4);
  heartbeat.hear(claim('fifth'));
  t.is(keys().length, 5);
  await heartbeat.close();
  t.is(asked.pulls, 1);
});

test('whoever waits for what was missed asks at once', async (t) => {
  const { heartbeat, asked, keys, claim } = await open(1e9);
  claim('missed');
  heartbeat.hear(claim('third'));
  await heartbeat.pull();
  t.deepEqual(keys(), ['first', 'missed', 'third']);
  await heartbeat.close();
  t.is(asked.pulls, 1);
});
