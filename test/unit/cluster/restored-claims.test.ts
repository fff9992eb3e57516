import test, { type ExecutionContext } from 'ava';
import type { Lease } from '#cluster';
import { PREFIX } from '../../support/virtual-cluster/node.ts';
import { openWorld } from '../../support/virtual-cluster/nodes.ts';
import { REDIS } from '../../support/virtual-cluster/redis.ts';

/** With this seed the claim of that test is made when its node has given it up for the last time. */
const LATE = 3;

/** Two nodes that know each other. */
async function open(t: ExecutionContext, seed?: number) {
  const opened = await openWorld(t, seed);
  const { world, start } = opened;
  const [a, b] = [await start('a'), await start('b')];
  await world.pass(1000);
  const isInRedis = (key: string): boolean => world.redis.data.hash(`${PREFIX}claims`).has(key);
  return { ...opened, a, b, isInRedis };
}

test.serial('a claim that was released does not come back with an older Redis', async (t) => {
  const { world, a, b, claim, release, listed, restart } = await open(t);
  const lease = await claim(a, 'k');
  const old = world.redis.dump();
  await release(lease, a);
  await world.pass(100);
  restart(old);
  await world.pass(10_000);
  t.deepEqual([await listed(a), await listed(b)], [[], []]);
  t.truthy(await claim(b, 'k'));
});

test.serial(
  'a claim that was released stays so when an older Redis has it, though its node has not heard of the release',
  async (t) => {
    const { world, a, b, claim, release, listed, restart } = await open(t);
    const { redis, net } = world;
    const lease = await claim(a, 'k');
    await world.pass(1000);
    const old = redis.dump();
    await release(lease, a);
    net.breaks('a', REDIS, 'cut');
    restart(old);
    net.healAll();
    await world.pass(10_000);
    t.deepEqual([await listed(a), await listed(b)], [[], []]);
  },
);

test.serial('a claim that Redis makes long after it was sent is given up', async (t) => {
  const { world, a, b, run, claim, release, listed, isInRedis } = await open(t, LATE);
  const { net } = world;
  // Redis knows the script
  await release(await claim(a, 'other'), a);
  net.breaks('a', REDIS, 'dark');
  await t.throwsAsync(run(a, () => a.cluster.claim('k', null, { silence: 'stop' })));
  await world.pass(8000);
  net.heal('a', REDIS);
  for (const end = world.scheduler.now + 8000; !isInRedis('k'); await world.pass(1)) t.true(world.scheduler.now < end);
  await world.pass(4000);
  t.false(isInRedis('k'));
  t.deepEqual([await listed(a), await listed(b)], [[], []]);
});

test.serial('a claim that a node took over, without an answer, is free once neither holder acts on it', async (t) => {
  const { world, a, b, run, start, claim, afterScript } = await open(t);
  const { net } = world;
  const c = await start('c');
  const former = (await claim(b, 'k', { silence: 'stop' })) as Lease;
  await afterScript('b', 'beat');
  await world.pass(10);
  const taking = run(a, () => a.cluster.claim('k', null, { silence: 'stop', take: true }));
  const isMade = afterScript('a', 'claim').then(() => {
    for (const node of ['a', 'b']) net.breaks(node, REDIS, 'dark');
  });
  await t.throwsAsync(taking);
  await isMade;
  t.true(former.valid, 'who had it has not heard that it was taken');
  net.heal('a', REDIS);
  for (const end = world.scheduler.now + 10_000; ; await world.pass(10)) {
    const lease = await claim(c, 'k', { silence: 'stop' });
    if (lease !== undefined) break;
    t.true(world.scheduler.now < end, 'it is free in the end');
  }
  t.false(former.valid);
});

for (const [set, entry] of [
  ['claims', () => 'k'],
  ['claims:of', (incarnation: string) => `${incarnation} continue k`],
] as const)
  test.serial(
    `a claim of which Redis has lost its entry in ${set} alone is made again, and no other node gets it`,
    async (t) => {
      const { world, a, b, claim } = await open(t);
      const lease = (await claim(a, 'k')) as Lease;
      const { data } = world.redis;
      const entries = set === 'claims' ? data.hash(PREFIX + set) : data.scores(PREFIX + set);
      t.true(entries.delete(entry(a.cluster.self.incarnation)));
      t.is(await claim(b, 'k'), undefined);
      await world.pass(5000);
      t.true(lease.valid);
      t.is(await claim(b, 'k'), undefined);
    },
  );

test.serial('the latest values of claims are written back, in one step, when an older Redis comes back', async (t) => {
  const { world, scripts, a, b, run, claim, restart } = await open(t);
  const { redis } = world;
  const keys = Array.from({ length: 20 }, (_, n) => `k/${n}`);
  const leases: Lease[] = [];
  for (const key of keys) leases.push((await claim(a, key)) as Lease);
  await run(a, async () => await Promise.all(leases.map((lease) => lease.keep('before'))));
  const old = redis.dump();
  await run(a, async () => {
    await Promise.all(leases.flatMap((lease) => [lease.update('said last'), lease.keep('kept last')]));
  });
  await world.pass(100);
  const written = () => scripts.filter(({ name }) => name === 'values').length;
  const before = written();
  restart(old);
  await world.pass(10_000);
  for (const key of keys) {
    t.is((await run(b, () => b.cluster.ownerOf(key)))?.meta, 'said last');
    t.is(redis.data.text(`${PREFIX}kept:${key}`), '"kept last"');
  }
  t.is(written() - before, 1);

  await claim(b, 'k/0', { take: true });
  await world.pass(2000);
  t.true(leases[0]?.signal.aborted);
  t.is(written() - before, 1, 'that one claim was lost says nothing of the others');
});
