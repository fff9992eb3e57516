import test from 'ava';
import type { Change } from '#cluster';
import { openAlone } from '../../support/cluster/cluster.ts';
import { countingName, CountingKind, publish, readTotal, write } from '../../support/tasks/counting-task.ts';
import { openTasks } from '../../support/tasks/fake-task.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const TASKS = 100;
const KEPT = { persistent: true, withinMs: 10_000 };

test('a node that is alone writes down the progress of all its tasks together, whenever they began', async (t) => {
  virtualTime(t);
  const cluster = await openAlone();
  let writes = 0;
  const { config } = cluster;
  const put = config.write.bind(config);
  config.write = async (changes: readonly Change[], expected) => {
    writes += 1;
    await put(changes, expected);
  };
  const node = openTasks(cluster, new CountingKind(undefined, 1));
  t.teardown(async () => {
    await node.tasks.close();
    await cluster.close();
  });
  const ids = Array.from({ length: TASKS }, (_, n) => `t${n}`);
  // one after the other
  for (const id of ids) {
    await node.everywhere.create(countingName(id), { stream: id }, KEPT);
    const output = await publish(node, id);
    await until('it runs', () => node.kind.running.has(id));
    write(output, 1);
  }
  const outputs = ids.map((id) => node.kind.running.get(id)?.output);
  const end = performance.now() + 20_000;
  writes = 0;
  await until('20 seconds go by', () => {
    for (const output of outputs) if (output !== undefined) write(output, 1);
    return performance.now() > end;
  });
  for (const id of ids) {
    const progress = node.tasks.definitions.get(countingName(id))?.progress;
    t.true(readTotal(progress?.value).total > 1, id);
  }
  t.true(writes <= 10, `${writes} writes`);
});
