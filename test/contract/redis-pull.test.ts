import test from 'ava';
import { Redis } from 'ioredis';
import type { Cluster, Lease } from '#cluster';
import { mirrored, openNode } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';

/** More than are told in one step, twice; so many are claimed at once. */
const MANY = 2500;
const AT_ONCE = 50;
const CONTINUE = { silence: 'continue' } as const;

async function take(node: Cluster, name: string): Promise<Lease> {
  const claim = await node.claim(name, name, CONTINUE);
  if ('owner' in claim) throw new Error(`held by ${claim.owner.id}`);
  return claim.lease;
}

async function takeMany(node: Cluster, count: number): Promise<Lease[]> {
  const leases: Lease[] = [];
  while (leases.length < count) {
    const names = Array.from({ length: AT_ONCE }, (_, n) => `key ${leases.length + n}`);
    leases.push(...(await Promise.all(names.map((name) => take(node, name)))));
  }
  return leases;
}

const known = async (node: Cluster): Promise<string> =>
  JSON.stringify([...(await node.list(''))].map(([key, { fence, meta }]) => [key, fence, meta]).sort());

async function open(t: Parameters<typeof RedisServer.start>[0]) {
  const redis = await RedisServer.start(t);
  const admin = new Redis(redis.url);
  t.teardown(() => admin.disconnect());
  const calls = async (command: string): Promise<number> =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await admin.info('commandstats'))?.[1] ?? 0);
  return { redis, admin, calls };
}

test('a node that joins reads all claims in parts, while they change', async (t) => {
  const { redis } = await open(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const leases = await takeMany(a, MANY);
  const joining = { isOver: false };
  const changing = (async () => {
    for (let n = 0; !joining.isOver || n < 200; n++) {
      await leases[n * 2]?.release();
      await leases[n * 2 + 1]?.update(n);
      await take(a, `new ${n}`);
    }
  })();
  const b = await openNode(t, 'b', { url: redis.url });
  await until('b is connected', () => b.state === 'connected');
  joining.isOver = true;
  await changing;
  const owners = await known(a);
  t.true(owners.includes('"new 199"'));
  t.is(await known(b), owners);
});

test('a node that has lost its connections reads only what has changed since, as long as Redis is the same run', async (t) => {
  const { redis, admin, calls } = await open(t);
  const [a, b] = [await openNode(t, 'a', { url: redis.url }), await openNode(t, 'b', { url: redis.url })];
  const leases = await takeMany(a, 2 * AT_ONCE);
  await until('both are there', async () => (await known(b)) === (await known(a)));
  const before = await calls('hscan');
  let isLost = false;
  b.events.once('state', () => (isLost = true));
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await until('b has lost them', () => isLost);
  await until('a is back', () =>
    leases[0]?.update('changed').then(
      () => true,
      () => false,
    ),
  );
  await until('b is back', () => b.state === 'connected');
  t.is((await b.ownerOf('key 0'))?.meta, 'changed');
  t.is(await known(b), await known(a));
  t.is(await calls('hscan'), before);
  t.true(leases.every(({ signal }) => !signal.aborted));
});

test('a change of one claim is sent to all nodes, which need not ask for it', async (t) => {
  const { redis } = await open(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const counts = { commands: 0, beats: 0 };
  const b = await openNode(
    t,
    'b',
    { url: redis.url },
    {
      onCommand: () => (counts.commands += 1),
      onBeat: () => (counts.beats += 1),
    },
  );
  const { owners } = mirrored(b, '');
  const lease = await take(a, 'key');
  let n = 0;
  // it asks nevertheless when a beat is answered, or an answer is on its way, at that moment
  await until('b knows of a change without having asked', async () => {
    const before = counts.commands - counts.beats;
    await lease.update(++n);
    await until('b knows of it', () => owners.get('key')?.meta === n);
    return counts.commands - counts.beats === before;
  });
  const name = `name\n'"`;
  const other = await take(a, name);
  await until('b knows of a name of many lines', () => owners.get(name)?.meta === name);
  await other.release();
  await until('b knows that it is free', () => !owners.has(name));
  t.deepEqual([...owners.keys()], ['key']);
});
