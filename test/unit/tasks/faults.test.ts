import test from 'ava';
import { fakeName, FakeKind, openTasks } from '../../support/tasks/fake-task.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const IDS = ['a', 'b', 'c', 'd'];
const TASKS = Array.from({ length: 6 }, (_, n) => `t${n}`);
const KEPT = { persistent: true, withinMs: 60_000 };

for (const seed of [1, 2, 3, 4, 5]) {
  test.serial(`never two run a task, and each runs again when the faults are over: seed ${seed}`, async (t) => {
    virtualTime(t);
    const cluster = MemoryCluster.create(t, seed);
    const { random, network } = cluster;
    const latest = new Map<string, number>();
    const faults = new Set<string>();
    const nodes = await Promise.all(
      IDS.map(async (id) => {
        // an earlier owner that acts after a later one has the lower fence
        const kind = new FakeKind(({ name, fence }) => {
          if (fence < (latest.get(name.id) ?? 0))
            faults.add(`${name.id}: ${id} acts with ${fence} after ${latest.get(name.id)}`);
          latest.set(name.id, fence);
        });
        return openTasks(await cluster.open(id), kind);
      }),
    );
    t.teardown(() => Promise.all(nodes.map(({ tasks }) => tasks.close())));
    await until('all see all', () => nodes.every((node) => node.cluster.nodes().length === IDS.length));
    const [first] = nodes as [(typeof nodes)[0]];
    for (const id of TASKS) await first.everywhere.create(fakeName(id), { does: 'wait' }, KEPT);
    const story: string[] = [];
    for (let round = 0; round < 6; round++) {
      const some = IDS.filter(() => random.chance(0.5));
      const fault = random.pick(['store', 'nodes', 'split', 'pause', 'loss', 'empty']);
      story.push(`${fault} ${some.join('')}`);
      if (fault === 'store') cluster.cutStore();
      if (fault === 'nodes') cluster.cutStore(some);
      if (fault === 'split') {
        cluster.split(
          some,
          IDS.filter((id) => !some.includes(id)),
        );
      }
      if (fault === 'pause') for (const id of some) cluster.pause(id);
      if (fault === 'loss') network.loss = 0.3;
      if (fault === 'empty') cluster.emptyStore();
      const end = performance.now() + random.below(8000);
      await until('it lasts', () => performance.now() > end);
      for (const id of IDS) if (network.paused(id)) cluster.resume(id);
      cluster.heal();
      const acted = new Map(latest);
      latest.clear();
      await until(`all act after ${story.join(', ')}`, () => TASKS.every((id) => latest.has(id)));
      for (const id of TASKS) t.true((latest.get(id) ?? 0) >= (acted.get(id) ?? 0), `${id} after ${story.join(', ')}`);
    }
    t.deepEqual([...faults], [], story.join(', '));
  });
}
