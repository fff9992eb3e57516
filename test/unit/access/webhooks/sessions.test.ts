import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Cluster } from '#cluster';
import type { WebhookSession } from '../../../../src/access/webhook-session.ts';
import { LeftSessions } from '../../../../src/access/webhooks/left-sessions.ts';
import { OpenSessions } from '../../../../src/access/webhooks/open-sessions.ts';
import { openAlone } from '../../../support/cluster/cluster.ts';
import { MemoryCluster } from '../../../support/memory-cluster/cluster.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

function opening(id: string, protocol = 'RTMP'): WebhookSession {
  const client = { address: '192.0.2.1', port: 1, real_ip: '192.0.2.1' };
  return { id, vhost: 'default', call: { client, protocol, direction: 'incoming', url: 'rtmp://a/b/c', time: 1 } };
}

/** Sessions of a node; `told` has whose ends its control server heard of, and from which node. */
function sessionsOf(t: ExecutionContext, cluster: Cluster, told: [id: string, node: string][], isUsed = true) {
  const notify = (closed: { readonly id: string }): void => {
    t.true('call' in closed, `${closed.id} is known`);
    told.push([closed.id, cluster.self.id]);
  };
  const onFault = (error: Error): void => t.fail(error.stack);
  const rechecks = { watch: () => {}, drop: () => {} };
  const own: OpenSessions = new OpenSessions({ cluster, notify, onFault, rechecks, onAway: () => left.lookIn() });
  const left = new LeftSessions({ cluster, own, notify, onFault, isUsed: () => isUsed });
  t.teardown(() => left.close());
  return { own, left, cluster };
}

async function three(t: ExecutionContext, seed: number) {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, seed);
  const told: [id: string, node: string][] = [];
  const open = async (id: string) => sessionsOf(t, await cluster.open(id), told);
  const [a, b, c] = [await open('a'), await open('b'), await open('c')];
  const ids = (): string[] => told.map(([id]) => id).sort();
  /** Waits until the store has these records, and which node has them. */
  const records = (expected: Record<string, string>): Promise<unknown> =>
    until(`records ${JSON.stringify(expected)}`, async () => {
      const names = new Map([a, b, c].map(({ cluster: { self } }) => [self.incarnation, self.id]));
      const found: Record<string, string> = {};
      for await (const page of b.cluster.records.pages())
        for (const { id, incarnation } of page) found[id] = names.get(incarnation) ?? 'another';
      return JSON.stringify(Object.entries(found).sort()) === JSON.stringify(Object.entries(expected).sort());
    });
  return { cluster, told, ids, a, b, c, open, records };
}

/** Longer than anything is waited for. */
const LONG_MS = 200_000;

test.serial('the end of a session is reported once, however often and soon it is closed', async (t) => {
  const { told, a, records } = await three(t, 1);
  a.own.adopt(opening('one'));
  a.own.close(opening('one'));
  a.own.adopt(opening('two'));
  await records({ two: 'a' });
  a.own.close(opening('two'));
  a.own.close(opening('two'));
  await a.own.settled();
  a.own.close(opening('two'));
  await delay(LONG_MS);
  t.deepEqual(told, [
    ['one', 'a'],
    ['two', 'a'],
  ]);
  t.is(a.own.size, 0);
  await records({});
});

test.serial('a session that is handed over before its record is written is known to its next owner', async (t) => {
  const { told, a, b, records } = await three(t, 1);
  a.own.adopt(opening('one', 'LLHLS'));
  a.own.release({ id: 'one', vhost: 'default' });
  await records({ one: 'a' });
  b.own.resume('one', 'default');
  await records({ one: 'b' });
  b.own.close({ id: 'one', vhost: 'default' });
  await until('its end is told', () => told.length > 0);
  t.deepEqual(told, [['one', 'b']]);
});

test.serial('a session that has just ended is not opened again', async (t) => {
  const told: [id: string, node: string][] = [];
  const { own } = sessionsOf(t, await openAlone(), told);
  own.adopt(opening('one'));
  await new Promise(setImmediate);
  own.close(opening('one'));
  own.resume('one', 'default');
  await own.settled();
  t.is(told.length, 1);
  t.is(own.size, 0);
});

test.serial('a session that ends in any turn around the end of a write is reported', async (t) => {
  const told: [id: string, node: string][] = [];
  const { own } = sessionsOf(t, await openAlone(), told);
  for (let turns = 0; turns < 30; turns++) {
    const id = `s${turns}`;
    own.adopt(opening(id));
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    own.close(opening(id));
    await new Promise(setImmediate);
    t.is(told.at(-1)?.[0], id, `after ${turns} turns`);
  }
  t.is(told.length, 30);
});

test.serial('sessions of a node that has died are closed by the others, each once', async (t) => {
  const { cluster, told, ids, a, b, records } = await three(t, 2);
  const names = Array.from({ length: 300 }, (_, n) => `s${n}`);
  for (const name of names) a.own.adopt(opening(name));
  b.own.adopt(opening('of b'));
  await records(Object.fromEntries([...names.map((name) => [name, 'a'] as const), ['of b', 'b'] as const]));
  cluster.kill('a');
  await until('all are told', () => told.length === names.length);
  await delay(LONG_MS);
  t.deepEqual(ids(), names.sort());
  t.false(told.some(([, node]) => node === 'a'));
  await records({ 'of b': 'b' });
});

test.serial('a session that moves is given a minute, and belongs to the node that goes on with it', async (t) => {
  const { cluster, told, a, b, records } = await three(t, 3);
  for (const name of ['moves', 'ends']) a.own.adopt(opening(name, 'LLHLS'));
  await records({ moves: 'a', ends: 'a' });
  cluster.kill('a');
  await delay(30_000);
  t.deepEqual(told, []);
  b.own.resume('moves', 'default');
  await records({ moves: 'b', ends: 'a' });
  await until('it is closed', () => told.length === 1);
  t.is(told[0]?.[0], 'ends');
  await delay(LONG_MS);
  b.own.close({ id: 'moves', vhost: 'default' });
  await b.own.settled();
  await delay(LONG_MS);
  t.deepEqual(told.slice(1), [['moves', 'b']]);
});

test.serial('a node that stood still and whose sessions were closed does not close them again', async (t) => {
  const { cluster, told, a, b, records } = await three(t, 4);
  for (const name of ['one', 'two']) a.own.adopt(opening(name));
  await records({ one: 'a', two: 'a' });
  cluster.pause('a');
  await until('both are told', () => told.length === 2);
  cluster.resume('a');
  a.own.close(opening('one'));
  await until('it is back', () => b.cluster.nodes().some(({ id, state }) => id === 'a' && state === 'ready'));
  await delay(LONG_MS);
  a.own.close(opening('two'));
  await a.own.settled();
  await delay(LONG_MS);
  t.is(told.length, 2);
  await records({});
});

test.serial('a node without the store reports its own sessions, and the records follow when it is back', async (t) => {
  const { cluster, told, a, records } = await three(t, 5);
  a.own.adopt(opening('before'));
  a.own.adopt(opening('stays'));
  await records({ before: 'a', stays: 'a' });
  cluster.cutStore();
  a.own.adopt(opening('meanwhile'));
  a.own.adopt(opening('short'));
  for (const name of ['before', 'short']) a.own.close(opening(name));
  await until('both are told', () => told.length === 2);
  cluster.heal();
  await records({ stays: 'a', meanwhile: 'a' });
  cluster.kill('a');
  await until('the others are told', () => told.length === 4);
  await delay(LONG_MS);
  t.deepEqual(new Set(told.map(([id]) => id)), new Set(['before', 'short', 'stays', 'meanwhile']));
  t.is(told.length, 4);
});

test.serial('sessions of a node that only the store does not reach are left alone, until it dies', async (t) => {
  const { cluster, told, ids, a, b, records } = await three(t, 10);
  for (const name of ['ends', 'stays', 'later']) a.own.adopt(opening(name));
  a.own.adopt(opening('moves', 'LLHLS'));
  await records({ ends: 'a', stays: 'a', later: 'a', moves: 'a' });
  cluster.cutStore(['a']);
  await until('it counts as lost', () => b.cluster.nodes().some(({ id, state }) => id === 'a' && state === 'lost'));
  await delay(LONG_MS);
  t.deepEqual(told, []);
  a.own.close(opening('ends'));
  await until('it is told', () => told.length === 1);
  cluster.heal();
  await records({ stays: 'a', later: 'a', moves: 'a' });
  a.own.close(opening('later'));
  await a.own.settled();
  cluster.cutStore(['a']);
  await delay(LONG_MS);
  t.deepEqual(ids(), ['ends', 'later']);
  cluster.kill('a');
  await until('all are told', () => told.length === 4);
  await delay(LONG_MS);
  t.deepEqual(ids(), ['ends', 'later', 'moves', 'stays']);
  await records({});
});

test.serial('a store that has lost everything gets the records of open sessions again', async (t) => {
  const { cluster, told, a, b, records } = await three(t, 6);
  a.own.adopt(opening('one'));
  b.own.adopt(opening('two'));
  await records({ one: 'a', two: 'b' });
  cluster.emptyStore();
  await records({ one: 'a', two: 'b' });
  cluster.kill('a');
  await until('it is told', () => told.length === 1);
  await delay(LONG_MS);
  t.is(told.length, 1);
});

test.serial('a record that comes back after its session was closed is removed, and nothing is reported', async (t) => {
  const { cluster, told, a, b, records } = await three(t, 7);
  a.own.adopt(opening('one'));
  await records({ one: 'a' });
  a.own.close(opening('one'));
  await a.own.settled();
  cluster.emptyStore();
  await until('it is open again', () =>
    a.cluster.records.put([{ id: 'one', value: JSON.parse(JSON.stringify(opening('one'))) }]).then(([taken]) => taken),
  );
  a.left.lookIn(1);
  b.left.lookIn(1);
  await records({});
  await delay(LONG_MS);
  t.deepEqual(told, [['one', 'a']]);
});

test.serial('a session that is handed over is the other node’s, and one that none takes is closed', async (t) => {
  const { told, a, b, records } = await three(t, 8);
  for (const name of ['taken', 'lost', 'back']) a.own.adopt(opening(name));
  await records({ taken: 'a', lost: 'a', back: 'a' });
  for (const name of ['taken', 'lost', 'back']) a.own.release({ id: name, vhost: 'default' });
  b.own.adopt(opening('taken'));
  a.own.adopt(opening('back'));
  await until('it is closed', () => told.length === 1);
  t.deepEqual(told, [['lost', 'a']]);
  await records({ taken: 'b', back: 'a' });
  b.own.close(opening('taken'));
  await b.own.settled();
  t.deepEqual(told.at(-1), ['taken', 'b']);
});

test.serial('a node that starts when all have died closes what they left', async (t) => {
  const { cluster, told, a, b, c, open, records } = await three(t, 9);
  a.own.adopt(opening('one'));
  c.own.adopt(opening('two'));
  await records({ one: 'a', two: 'c' });
  for (const node of [a, b, c]) await node.left.close();
  for (const id of ['a', 'b', 'c']) cluster.kill(id);
  await open('d');
  await until('both are told', () => told.length === 2);
  await delay(LONG_MS);
  t.deepEqual([...told].sort(), [
    ['one', 'd'],
    ['two', 'd'],
  ]);
});

test.serial('random deaths, silences and outages: every session is reported once', async (t) => {
  for (const seed of [11, 12, 13]) {
    const { cluster, ids, a, b, c, told } = await three(t, seed);
    const { random } = cluster;
    const opened: string[] = [];
    const nodes = [b, c];
    const open: { readonly id: string; readonly node: typeof a }[] = [];
    for (let step = 0; step < 60; step++) {
      const node = random.pick(step < 30 ? [a, b, c] : nodes);
      const id = `${seed} ${step}`;
      node.own.adopt(opening(id));
      opened.push(id);
      open.push({ id, node });
      if (random.chance(0.4)) {
        const [one] = open.splice(random.below(open.length), 1);
        if (one !== undefined && (step < 30 || one.node !== a)) one.node.own.close(opening(one.id));
      }
      if (step === 20) cluster.cutStore();
      if (step === 24) cluster.heal();
      if (step === 29) {
        await delay(5000);
        cluster.kill('a');
      }
      await delay(random.below(500));
    }
    await delay(LONG_MS);
    for (const { id, node } of open) if (node !== a) node.own.close(opening(id));
    await until(`all of seed ${seed} are told`, () => told.length >= opened.length);
    await delay(LONG_MS);
    t.deepEqual(ids(), opened.sort(), `seed ${seed}`);
    for (const node of [a, b, c]) await node.left.close();
  }
});
