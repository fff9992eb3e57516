import test, { type ExecutionContext } from 'ava';
import { FakeKind, fakeName, openTasks } from '../../support/tasks/fake-task.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const NAME = fakeName('channel');
const WAIT = { does: 'wait' } as const;
const FOLLOW = { does: 'follow' } as const;

type Node = ReturnType<typeof openTasks<FakeKind>>;

async function open(t: ExecutionContext, ids: readonly string[]): Promise<{ cluster: MemoryCluster; nodes: Node[] }> {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, 1);
  const nodes = await Promise.all(ids.map(async (id) => openTasks(await cluster.open(id), new FakeKind())));
  t.teardown(() => Promise.all(nodes.map(({ tasks }) => tasks.close())));
  await until('all see all', () => nodes.every((node) => node.cluster.nodes().length === ids.length));
  return { cluster, nodes };
}

function isRunning({ kind }: Node): boolean {
  return kind.running.has(NAME.id);
}

/** The nodes that run it, by place. */
function runners(nodes: readonly Node[]): number[] {
  return nodes.flatMap((node, place) => (isRunning(node) ? [place] : []));
}

test.serial('a task that several nodes offer runs on one, and on another when that is gone', async (t) => {
  const ids = ['a', 'b', 'c', 'd'];
  const { cluster, nodes } = await open(t, ids);
  for (const place of [0, 1]) nodes[place]!.tasks.offer(NAME, WAIT, '1');
  await until('one runs it', () => runners(nodes).length === 1);
  const [first = -1] = runners(nodes);
  t.true([0, 1].includes(first));
  await until('others know who', () => nodes[2]!.tasks.owner(NAME)?.id === ids[first]);
  cluster.kill(ids[first]!);
  const second = nodes[1 - first]!;
  await until('the other runs it', () => isRunning(second));
  await second.tasks.withdraw(NAME);
  t.false(isRunning(second));
  nodes[3]!.tasks.offer(NAME, WAIT, '1');
  await until('who offers it later runs it', () => isRunning(nodes[3]!));
  t.false(isRunning(nodes[2]!));
});

test.serial('a task that one node withdraws goes on where it is still offered', async (t) => {
  const { nodes } = await open(t, ['a', 'b']);
  for (const { tasks } of nodes) tasks.offer(NAME, WAIT, '1');
  await until('one runs it', () => runners(nodes).length === 1);
  const [first = -1] = runners(nodes);
  await nodes[first]!.tasks.withdraw(NAME);
  await until('the other runs it', () => isRunning(nodes[1 - first]!));
  await nodes[1 - first]!.tasks.withdraw(NAME);
  t.deepEqual(runners(nodes), []);
  await until('nobody has it', () => nodes.every(({ tasks }) => tasks.owner(NAME) === undefined));
});

test.serial('the offer of the owner counts: a run hears of changes, and another version is another task', async (t) => {
  const { nodes } = await open(t, ['a', 'b']);
  for (const { tasks } of nodes) tasks.offer(NAME, FOLLOW, '1');
  await until('one runs it', () => runners(nodes).length === 1);
  const [first = -1] = runners(nodes);
  const owner = nodes[first]!;
  nodes[1 - first]!.tasks.offer(NAME, { ...FOLLOW, from: 'the other' }, '1');
  owner.tasks.offer(NAME, { ...FOLLOW, from: 'the owner' }, '1');
  t.deepEqual(owner.kind.heard, [{ ...FOLLOW, from: 'the owner' }]);
  const { signal } = owner.kind.running.get(NAME.id)!;
  t.false(signal.aborted);
  owner.tasks.offer(NAME, FOLLOW, '2');
  t.like(signal.reason, { reason: 'removed' });
  await until('it runs again', () => runners(nodes).length === 1);
  t.deepEqual(nodes.map(({ kind }) => kind.heard.length).sort(), [0, 1]);
});

test.serial('a stored task comes before an offered one of that name, which is back when that is deleted', async (t) => {
  const { nodes } = await open(t, ['a', 'b']);
  const [a, b] = nodes as [Node, Node];
  const spec = (): unknown => (a.kind.running.get(NAME.id) ?? b.kind.running.get(NAME.id))?.spec;
  await b.everywhere.define(NAME, { ...WAIT, from: 'the store' }, { persistent: true });
  await until('it runs', () => spec() !== undefined);
  a.tasks.offer(NAME, { ...WAIT, from: 'a file' }, '1');
  t.deepEqual(a.tasks.definitions.get(NAME)?.spec, { ...WAIT, from: 'the store' });
  await t.throwsAsync(b.everywhere.define(NAME, WAIT, { persistent: true }), { name: 'TaskExistsError' });
  t.deepEqual(spec(), { ...WAIT, from: 'the store' });
  t.true(await b.everywhere.remove(NAME));
  await until('the offered one runs', () => (spec() as { from?: string } | undefined)?.from === 'a file');
  t.true(isRunning(a));
  t.deepEqual(a.tasks.definitions.in(NAME.kind, a.registry.vhost('default').applications.get('app')!), [NAME]);
  await t.throwsAsync(a.everywhere.define(NAME, WAIT, { persistent: true }), { name: 'TaskExistsError' });
});
