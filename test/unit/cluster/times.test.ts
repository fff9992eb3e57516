import test, { type ExecutionContext } from 'ava';
import { timingOf } from '../../../cluster/redis/timing.ts';
import { PREFIX } from '../../support/virtual-cluster/node.ts';
import { openWorld, type VirtualNode } from '../../support/virtual-cluster/nodes.ts';

const { ttl } = timingOf();
/** Virtual time: messages take some milliseconds, and nothing else does. */
const SOON_MS = 100;

type Opened = Awaited<ReturnType<typeof openWorld>>;

async function measure({ world }: Opened, step: () => Promise<unknown>): Promise<number> {
  const begun = world.scheduler.now;
  await step();
  return world.scheduler.now - begun;
}

const write = ({ run }: Opened, node: VirtualNode, key: string) =>
  run(node, () => node.cluster.config.write([{ key, value: 1, seen: 0 }]));

/** How long it takes until a node gets what another one had. */
async function untilFree(t: ExecutionContext, opened: Opened, node: VirtualNode, key: string): Promise<number> {
  return await measure(opened, async () => {
    for (const end = opened.world.scheduler.now + 60_000; ; await opened.world.pass(10)) {
      if ((await opened.claim(node, key)) !== undefined) return;
      t.true(opened.world.scheduler.now < end, 'it is free in the end');
    }
  });
}

test.serial('the first write of a new cluster is made at once', async (t) => {
  const opened = await openWorld(t);
  const a = await opened.start('a');
  const took = await measure(opened, () => write(opened, a, 'made'));
  t.log(`${took} ms`);
  t.true(took < SOON_MS);
});

test.serial('a Redis that was emptied is written to within a second when all nodes are alive', async (t) => {
  const opened = await openWorld(t);
  const { world, start, claim } = opened;
  const nodes = [await start('a'), await start('b'), await start('c')] as const;
  for (const node of nodes) await claim(node, `of ${node.cluster.self.id}`);
  await world.pass(2000);
  world.redis.flush();
  const took = await measure(opened, () => write(opened, nodes[0], 'made'));
  t.log(`${took} ms`);
  t.true(took < 1000);
});

test.serial('the claims of a dead host are free soon though the node that was to ask for it dies, too', async (t) => {
  const opened = await openWorld(t);
  const { world, start, claim } = opened;
  const nodes = [await start('a'), await start('b'), await start('c'), await start('d')] as const;
  const [owner, ...others] = nodes;
  await claim(owner, 'k');
  await world.pass(2000);
  world.net.silence(owner.process);
  const begun = world.scheduler.now;
  const asks = `${PREFIX}asked:${owner.cluster.self.incarnation}`;
  while (world.redis.data.text(asks) === undefined) await world.pass(1);
  const asker = world.redis.data.text(asks)?.split(' ')[0];
  for (const { cluster, process } of others) if (cluster.self.id === asker) world.net.silence(process);
  const left = others.find(({ cluster }) => cluster.self.id !== asker) as VirtualNode;
  const took = await untilFree(t, opened, left, 'k');
  t.log(`${took} ms after the death of ${asker}, ${world.scheduler.now - begun} ms after that of the owner`);
  t.true(took < 1.5 * ttl);
});

test.serial('the others hear that a node will stop before whatever it does next', async (t) => {
  const { world, start, run, claim, release } = await openWorld(t);
  const [a, b] = [await start('a'), await start('b')];
  const lease = await claim(a, 'k');
  await world.pass(1000);
  const seen: (string | undefined)[] = [];
  b.cluster.watch('', () => seen.push(b.cluster.nodes().find(({ id }) => id === 'a')?.state));
  await run(a, () => a.cluster.retire());
  await release(lease, a);
  await world.pass(SOON_MS);
  t.deepEqual(seen, ['ready', 'draining']);
});
