import test from 'ava';
import type { Json } from '#cluster';
import { taskKey } from '../../../src/tasks/definition.ts';
import type { StreamKind } from '../../../src/tasks/kind.ts';
import { openAlone } from '../../support/cluster/cluster.ts';
import { countingName, publish } from '../../support/tasks/counting-task.ts';
import { openTasks } from '../../support/tasks/fake-task.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const ONE = countingName('one');

class FailingKind implements StreamKind {
  readonly name = 'counting';
  runs = 0;

  follows(spec: Json): string | undefined {
    return (spec as { readonly stream?: string }).stream;
  }

  async run(): Promise<void> {
    this.runs += 1;
    throw new Error('the disk is full');
  }
}

test('a task that fails does not keep its claim while it pauses when its stream has gone', async (t) => {
  virtualTime(t);
  const node = openTasks(await openAlone(), new FailingKind());
  t.teardown(async () => {
    await node.tasks.close();
    await node.cluster.close();
  });
  await node.everywhere.create(ONE, { stream: 'live' }, { persistent: true, withinMs: 10_000 });
  const output = await publish(node, 'live');
  const isFree = async () => (await node.cluster.ownerOf(taskKey(ONE))) === undefined;
  await until('it pauses for seconds', () => node.kind.runs >= 6);
  t.false(await isFree());
  output.input.close('gone');
  await until('another node can claim it', isFree, 500);
  const { runs } = node.kind;
  await publish(node, 'live');
  await until('it runs where its stream is', () => node.kind.runs > runs);
});
