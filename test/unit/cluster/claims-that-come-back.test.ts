import test, { type ExecutionContext } from 'ava';
import type { Cluster, Lease } from '#cluster';
import { Lua } from '../../support/virtual-cluster/lua.ts';
import { openNode, PREFIX } from '../../support/virtual-cluster/node.ts';
import { REDIS } from '../../support/virtual-cluster/redis.ts';
import type { Process } from '../../support/virtual-cluster/scheduler.ts';
import { World } from '../../support/virtual-cluster/world.ts';

/** With this seed the claim of the last test is made when its node has given it up for the last time. */
const LATE = 3;
const CONTINUE = { silence: 'continue', keepMs: 60_000 } as const;

interface Node {
  readonly process: Process;
  readonly cluster: Cluster;
}

/** Two nodes that know each other, in virtual time until the test ends. */
async function open(t: ExecutionContext, seed = 1) {
  const world = new World({ lua: await Lua.start(), seed });
  t.teardown(world.scheduler.begin());
  const start = async (id: string): Promise<Node> => {
    const process = world.process(id);
    return { process, cluster: await world.until(openNode(process)) };
  };
  const [a, b] = [await start('a'), await start('b')];
  await world.pass(1000);
  const claim = async ({ process, cluster }: Node, key: string, take = false): Promise<Lease | undefined> => {
    const granted = await world.until(process.enter(() => cluster.claim(key, null, { ...CONTINUE, take })));
    return 'lease' in granted ? granted.lease : undefined;
  };
  const release = async (lease: Lease | undefined, { process }: Node): Promise<void> => {
    if (lease !== undefined) await world.until(process.enter(() => lease.release()));
  };
  const isInRedis = (key: string): boolean => world.redis.data.hash(`${PREFIX}claims`).has(key);
  const listed = async ({ process, cluster }: Node): Promise<string[]> => [
    ...(await world.until(process.enter(() => cluster.list('')))).keys(),
  ];
  return { world, a, b, claim, release, listed, isInRedis };
}

test.serial('a claim that was released does not come back with an older Redis', async (t) => {
  const { world, a, b, claim, release, listed } = await open(t);
  const { redis } = world;
  const lease = await claim(a, 'k');
  const old = redis.dump();
  await release(lease, a);
  await world.pass(100);
  redis.process.kill();
  redis.run(old);
  await world.pass(10_000);
  t.deepEqual([await listed(a), await listed(b)], [[], []]);
  t.truthy(await claim(b, 'k'));
});

test.serial('nor one of which its node has not heard yet that Redis has removed it', async (t) => {
  const { world, a, b, claim, release, listed } = await open(t);
  const { redis, net } = world;
  const lease = await claim(a, 'k');
  await world.pass(1000);
  const old = redis.dump();
  await release(lease, a);
  net.breaks('a', REDIS, 'cut');
  redis.process.kill();
  redis.run(old);
  net.healAll();
  await world.pass(10_000);
  t.deepEqual([await listed(a), await listed(b)], [[], []]);
});

test.serial('a claim that Redis makes long after it was sent is given up', async (t) => {
  const { world, a, b, claim, release, listed, isInRedis } = await open(t, LATE);
  const { net } = world;
  // Redis knows the script
  await release(await claim(a, 'other'), a);
  net.breaks('a', REDIS, 'dark');
  await t.throwsAsync(world.until(a.process.enter(() => a.cluster.claim('k', null, { silence: 'stop' }))));
  await world.pass(8000);
  net.heal('a', REDIS);
  for (const end = world.scheduler.now + 8000; !isInRedis('k'); await world.pass(1)) t.true(world.scheduler.now < end);
  await world.pass(4000);
  t.false(isInRedis('k'));
  t.deepEqual([await listed(a), await listed(b)], [[], []]);
});

test.serial('what a claim says is what it said last, though Redis is older', async (t) => {
  const { world, a, b, claim } = await open(t);
  const { redis } = world;
  const lease = (await claim(a, 'k')) as Lease;
  await world.until(a.process.enter(() => lease.keep('before')));
  const old = redis.dump();
  await world.until(a.process.enter(() => Promise.all([lease.update('said last'), lease.keep('kept last')])));
  await world.pass(100);
  redis.process.kill();
  redis.run(old);
  await world.pass(10_000);
  t.is((await world.until(b.process.enter(() => b.cluster.ownerOf('k'))))?.meta, 'said last');
  t.is(redis.data.text(`${PREFIX}kept:k`), '"kept last"');
});
