import test from 'ava';
import type { Lease } from '#cluster';
import { timingOf } from '../../../cluster/redis/timing.ts';
import { PREFIX } from '../../support/virtual-cluster/node.ts';
import { openWorld, type VirtualNode } from '../../support/virtual-cluster/nodes.ts';

const { ttl, grace } = timingOf();

const stateOf = ({ cluster }: VirtualNode, node: string) => cluster.nodes().find(({ id }) => id === node)?.state;

for (const lost of ['claims', 'nodes:heard', 'nodes:fate', 'nothing'])
  test.serial(
    `a dead node that is still listed holds up no recovery after a loss of ${lost}, and stays lost`,
    async (t) => {
      const { world, start, claim, restart } = await openWorld(t);
      const [a, b, d] = [await start('a'), await start('b'), await start('d')];
      await world.pass(1000);
      world.net.silence(d.process);
      await world.pass(3 * ttl);
      t.is(stateOf(a, 'd'), 'lost');

      if (!world.redis.data.delete(PREFIX + lost)) restart();
      const begun = world.scheduler.now;
      do await world.pass(10);
      while (b.cluster.state !== 'connected');
      t.truthy(await claim(b, 'new', { silence: 'stop' }));
      t.true(world.scheduler.now - begun < grace / 2);
      const seen = new Set<string | undefined>();
      for (const end = world.scheduler.now + 3 * ttl; world.scheduler.now < end; await world.pass(20))
        for (const node of [a, b]) seen.add(stateOf(node, 'd'));
      t.deepEqual([...seen], ['lost']);
    },
  );

for (const [host, isFree] of [
  ['10.0.0.1', true],
  ['host-a', false],
] as const)
  test.serial(
    `the claims of a process are ${isFree ? '' : 'not '}at once those of the next one at ${host}`,
    async (t) => {
      const { world, start, claim, afterScript } = await openWorld(t);
      const former = await start(host, 'a');
      const lease = (await claim(former, 'k', { silence: 'stop' })) as Lease;
      await afterScript(host, 'beat');
      await world.pass(10);
      former.process.kill();
      await world.pass(10);
      const again = await start(host, 'a');
      const next = await claim(again, 'k', { silence: 'stop' });
      t.is(next !== undefined, isFree, 'a name may lead to another host, where the former process runs on');
      if (next !== undefined) t.true(next.fence > lease.fence);
    },
  );
