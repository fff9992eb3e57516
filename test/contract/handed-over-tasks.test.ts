import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Json } from '#cluster';
import type { Standby, Task } from '../../src/tasks/kind.ts';
import { openNode } from '../support/cluster/cluster.ts';
import { fakeName, FakeKind, openTasks } from '../support/tasks/fake-task.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const KEPT = { persistent: true, withinMs: PATIENCE_MS };
const ONE = fakeName('one');
const SPEC = { does: 'wait' };

/** Tasks that are handed over when the test says so, to nodes that have what they need. */
class CarefulKind extends FakeKind {
  /** Whether this node has what tasks need, and gets ready. */
  suited = true;
  isAble = true;
  /** What its runs are waited for with, by the id of the task. */
  readonly leaves = new Map<string, () => void>();
  /** Ids of the tasks that it stands by for, and of those that it has run so. */
  readonly standing = new Set<string>();
  readonly stoodIn: string[] = [];
  isInterruptible = true;

  async suits(): Promise<boolean> {
    return this.suited;
  }

  override async run(task: Task): Promise<void> {
    const { id } = task.name;
    if (this.isInterruptible) task.handsOver((leave) => this.leaves.set(id, leave));
    await super.run(task).finally(() => this.leaves.delete(id));
  }

  standBy({ name: { id } }: Pick<Task, 'name'>): Standby {
    this.standing.add(id);
    return {
      ready: this.isAble ? Promise.resolve() : Promise.reject(new Error('it cannot')),
      run: async (task) => {
        this.standing.delete(id);
        this.stoodIn.push(id);
        await this.run(task);
      },
      close: () => this.standing.delete(id),
    };
  }
}

type Node = ReturnType<typeof openTasks<CarefulKind>>;

async function open(t: ExecutionContext, ids: readonly string[] = ['a', 'b', 'c']): Promise<readonly Node[]> {
  const redis = await RedisServer.start(t);
  const nodes: Node[] = [];
  for (const id of ids) {
    const node = openTasks(await openNode(t, id, { url: redis.url }), new CarefulKind());
    t.teardown(() => node.tasks.close());
    node.cluster.describe({ load: 0, full: false, info: {} });
    nodes.push(node);
  }
  await until('all know all', () =>
    nodes.every(({ cluster }) => cluster.nodes().filter(({ state }) => state === 'ready').length === ids.length),
  );
  return nodes;
}

/** A task that runs, its owner, and the others. */
async function running(t: ExecutionContext, spec: Json = SPEC, ids?: readonly string[]) {
  const nodes = await open(t, ids);
  await (nodes[0] as Node).everywhere.define(ONE, spec, KEPT);
  const owner = await until('it runs', () => nodes.find(({ kind }) => kind.running.has('one')));
  const others = nodes.filter((node) => node !== owner) as [Node, Node];
  return { nodes, owner, others };
}

const drain = ({ cluster }: Node) => cluster.drain(cluster.self.id);
const leave = ({ kind }: Node) => until('it waits for its moment', () => kind.leaves.get('one'));
const runsOn = (nodes: readonly Node[]) => nodes.find(({ kind }) => kind.running.has('one'));

test('a task goes on until another node stands by and its own moment has come', async (t) => {
  const { nodes, owner, others } = await running(t);
  await drain(owner);
  const leaves = await leave(owner);
  const [next] = others.filter(({ kind }) => kind.standing.has('one'));
  t.is(others.filter(({ kind }) => kind.standing.has('one')).length, 1);
  await delay(100);
  t.is(runsOn(nodes), owner);
  leaves();
  await until('it runs there', () => runsOn(nodes) === next);
  t.deepEqual(next?.kind.stoodIn, ['one']);
  t.false(owner.kind.running.has('one'));
});

test('a task that nothing interrupts is handed over at once, to any node that takes it', async (t) => {
  const nodes = await open(t);
  for (const { kind } of nodes) kind.isInterruptible = false;
  await (nodes[0] as Node).everywhere.define(ONE, SPEC, KEPT);
  const owner = await until('it runs', () => runsOn(nodes));
  await drain(owner);
  await until('it runs elsewhere', () => ![owner, undefined].includes(runsOn(nodes)));
  t.deepEqual(
    nodes.flatMap(({ kind }) => kind.stoodIn),
    [],
  );
});

test('a task stays on a draining node until another one has what it needs, and gets ready', async (t) => {
  const { nodes, owner, others } = await running(t);
  for (const { kind } of others) kind.suited = false;
  await drain(owner);
  await delay(300);
  t.is(runsOn(nodes), owner);
  const [next, never] = others;
  next.kind.suited = never.kind.suited = true;
  never.kind.isAble = false;
  (await leave(owner))();
  await until('it runs there', () => runsOn(nodes) === next);
  t.deepEqual(next.kind.stoodIn, ['one']);
});

test('a task that runs where something is missing goes on where that is, when it is there', async (t) => {
  const { nodes, owner, others } = await running(t);
  for (const { kind } of nodes) kind.suited = false;
  const [next] = others;
  next.kind.suited = true;
  (await leave(owner))();
  await until('it runs there', () => runsOn(nodes) === next);
  t.deepEqual(next.kind.stoodIn, ['one']);
});

test('a task that no node offers is no reason for a drained node to stay', async (t) => {
  const { nodes, owner } = await running(t);
  for (const { kind } of nodes) kind.suited = false;
  await drain(owner);
  (await leave(owner))();
  const next = await until('it runs elsewhere', () => runsOn(nodes) !== owner && runsOn(nodes));
  t.deepEqual(next.kind.stoodIn, ['one']);
});

test('a drain that is taken back leaves the task where it is', async (t) => {
  const { nodes, owner, others } = await running(t);
  await drain(owner);
  const leaves = await leave(owner);
  await owner.cluster.undrain(owner.cluster.self.id);
  await until('it does not drain any more', () => !owner.cluster.draining);
  leaves();
  await delay(200);
  t.is(runsOn(nodes), owner);
  t.false(owner.kind.running.get('one')?.signal.aborted);
  owner.kind.leaves.clear();
  await drain(owner);
  (await leave(owner))();
  await until('it runs elsewhere', () => ![owner, undefined].includes(runsOn(nodes)));
  await until('nobody stands by', () => others.every(({ kind }) => kind.standing.size === 0));
});

test('a task whose owner is gone before its moment goes on where a node stands by, at once', async (t) => {
  // a third one would take it where the one that stands by is late
  const { owner, others } = await running(t, SPEC, ['a', 'b']);
  await drain(owner);
  await leave(owner);
  const [next] = others;
  await owner.tasks.close();
  await until('it runs there', () => next.kind.running.has('one'));
  t.deepEqual(next.kind.stoodIn, ['one']);
});

test('a task that is changed while another node stands by begins anew there, and one that is deleted does not', async (t) => {
  const { nodes, owner, others } = await running(t, { does: 'follow' });
  await drain(owner);
  const leaves = await leave(owner);
  await others[0].everywhere.change(ONE, () => ({ does: 'wait' }));
  await until('nobody stands by', () => others.every(({ kind }) => kind.standing.size === 0));
  leaves();
  const next = await until('it runs elsewhere', () => others.find(({ kind }) => kind.running.has('one')));
  t.deepEqual(next.kind.running.get('one')?.spec, { does: 'wait' });
  t.deepEqual(next.kind.stoodIn, []);
  await drain(next);
  await leave(next);
  t.true(await next.everywhere.remove(ONE));
  await until('nobody stands by', () => nodes.every(({ kind }) => kind.standing.size === 0));
  t.is(runsOn(nodes), undefined);
});
