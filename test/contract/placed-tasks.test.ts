import test, { type ExecutionContext } from 'ava';
import type { Json } from '#cluster';
import { TaskEnd } from '../../src/tasks/kind.ts';
import { TaskExistsError } from '../../src/tasks/tasks.ts';
import { openNode } from '../support/cluster/cluster.ts';
import { CountingKind } from '../support/tasks/counting-task.ts';
import { FakeFailure, FakeKind, fakeName, openTasks } from '../support/tasks/fake-task.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';
import { vhostConfig } from '../unit/core/support.ts';

const KEPT = { persistent: true, withinMs: PATIENCE_MS };

class FakeKindOfNode extends FakeKind {
  readonly node: string;

  constructor(node: string) {
    super();
    this.node = node;
  }
}

/** Its tasks name the node that has what they need. */
class ChoosyKind extends FakeKindOfNode {
  async suits(spec: Json): Promise<boolean> {
    return (spec as { on?: string }).on === this.node;
  }
}

const ids = (nodes: readonly Node[]) => nodes.map(({ cluster }) => cluster.self.id);

const addTo = (spec: Json) => ({ ...(spec as object), more: (spec as { more: number }).more + 1 });

/** Nodes of which only those with room are given tasks. */
async function open(
  t: ExecutionContext,
  redis: RedisServer,
  rooms: Readonly<Record<string, boolean>>,
  Kind: new (node: string) => FakeKind = FakeKindOfNode,
) {
  const nodes: Node[] = [];
  for (const [id, hasRoom] of Object.entries(rooms)) {
    const node = openTasks(await openNode(t, id, { url: redis.url }), new Kind(id));
    t.teardown(() => node.tasks.close());
    node.cluster.describe({ load: 0, full: !hasRoom, info: {} });
    nodes.push(node);
  }
  await until('all know all', () =>
    nodes.every(({ cluster }) => {
      const known = cluster.nodes();
      return known.length === nodes.length && known.every(({ id, full }) => full !== rooms[id]);
    }),
  );
  return nodes as unknown as [Node, Node, Node];
}

type Node = ReturnType<typeof openTasks<FakeKind>>;

test('a task that is created on one node runs on one that has room, and every node knows how it goes', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b, c] = await open(t, redis, { a: false, b: true, c: false });
  await a.everywhere.create(fakeName('one'), { does: 'wait' }, KEPT);
  t.true(b.kind.running.has('one'));
  await t.throwsAsync(c.everywhere.create(fakeName('one'), { does: 'wait' }, KEPT), { instanceOf: TaskExistsError });
  const application = c.registry.vhost('default').application('app');
  const rows = await c.everywhere.list('fake', application);
  t.is(rows.length, 1);
  t.like(rows[0], { name: fakeName('one'), state: 'running' });
  t.true(await c.everywhere.remove(fakeName('one')));
  t.is(b.kind.running.size, 0);
  t.deepEqual(await a.everywhere.list('fake', application), []);
});

test('the reason why another node could not create a task is returned to the caller, and no part of the task is left', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = await open(t, redis, { a: false, b: true });
  const create = (does: string, options = KEPT) => a.everywhere.create(fakeName('one'), { does }, options);
  const failure = await t.throwsAsync(create('fail'), { instanceOf: FakeFailure });
  t.is(failure.message, 'elsewhere: it fails');
  await t.throwsAsync(create('hang', { ...KEPT, withinMs: 50 }), { instanceOf: TaskEnd });
  await t.throwsAsync(a.everywhere.create({ ...fakeName('one'), app: 'none' }, { does: 'wait' }, KEPT), {
    instanceOf: TaskEnd,
  });
  for (const { tasks } of [a, b]) t.deepEqual([...tasks.definitions.names()], []);
  t.deepEqual([...(await a.cluster.list('task'))], []);
});

test('a task gets another spec from any node: a run that listens goes on, any other begins anew', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b, c] = await open(t, redis, { a: false, b: true, c: false });
  const [follows, waits] = [fakeName('follows'), fakeName('waits')];
  await a.everywhere.create(follows, { does: 'follow' }, KEPT);
  await a.everywhere.create(waits, { does: 'wait' }, KEPT);
  const run = b.kind.running.get('follows');
  const before = c.tasks.definitions.get(follows);
  const add = (more: Json) => (spec: Json) => ({ ...(spec as object), more });
  for (const name of [follows, waits]) t.true(await c.everywhere.change(name, add(1)));
  await until('the run has heard', () => b.kind.heard.length === 1);
  await until('the other began anew', () => b.kind.runs.get('waits') === 2);
  t.deepEqual(b.kind.heard, [{ does: 'follow', more: 1 }]);
  t.is(b.kind.running.get('follows'), run);
  t.false(run?.signal.aborted);
  t.deepEqual(c.tasks.definitions.get(follows), { ...before, spec: { does: 'follow', more: 1 } } as typeof before);
  t.true(await a.everywhere.change(follows, (spec) => spec), 'one that changes nothing');
  await Promise.all([a, b, c].map((node) => node.everywhere.change(follows, addTo)));
  await until('all are heard', () => (b.kind.heard.at(-1) as { more: number }).more === 4);
  t.is(b.kind.runs.get('follows'), 1);
  t.false(await a.everywhere.change(fakeName('none'), (spec) => spec));
  const refuse = () => {
    throw new FakeFailure('refused');
  };
  await t.throwsAsync(a.everywhere.change(follows, refuse), { instanceOf: FakeFailure });
});

test('a task that is only defined begins where it is suited, and elsewhere when no such node is there', async (t) => {
  const redis = await RedisServer.start(t);
  const nodes = await open(t, redis, { a: true, b: true, c: true }, ChoosyKind);
  const [a, b, c] = nodes;
  for (let n = 0; n < 6; n++) {
    await a.everywhere.define(fakeName(`t${n}`), { does: 'wait', on: 'b' }, KEPT);
    const owner = await until('it runs', () => nodes.find(({ kind }) => kind.running.has(`t${n}`)));
    t.is(owner.cluster.self.id, 'b');
  }
  await b.tasks.close();
  await until('all run on', () => a.kind.running.size + c.kind.running.size === 6);
});

test('however many nodes there are, a task begins where it is suited', async (t) => {
  const redis = await RedisServer.start(t);
  const names = Array.from({ length: 8 }, (_, i) => `n${i}`);
  const nodes = await open(t, redis, Object.fromEntries(names.map((name) => [name, true])), ChoosyKind);
  const [first] = nodes;
  for (const on of names) await first.everywhere.define(fakeName(`for-${on}`), { does: 'wait', on }, KEPT);
  for (const on of names) {
    const owner = await until('it runs', () => nodes.find(({ kind }) => kind.running.has(`for-${on}`)));
    t.is(owner.cluster.self.id, on);
  }
});

test('only the node that runs a task makes its application of the template', async (t) => {
  const redis = await RedisServer.start(t);
  const made = { name: 'made', applications: [{ name: '*', type: 'live' }] };
  const name = { ...fakeName('task'), vhost: made.name, app: 'new' };
  const nodes: Node[] = [];
  for (const id of ['a', 'b', 'c']) {
    const node = openTasks(await openNode(t, id, { url: redis.url }), new FakeKind());
    t.teardown(() => node.tasks.close());
    node.registry.createVhost(vhostConfig({ ...made, host: { names: ['made'] } }), true);
    nodes.push(node);
  }
  await until('all know each other', () => nodes.every(({ cluster }) => cluster.nodes().length === nodes.length));
  await nodes[0]?.everywhere.define(name, { does: 'wait' }, KEPT);
  const owner = await until('it runs', () => nodes.find(({ kind }) => kind.running.has('task')));
  await until('all know its owner', () => nodes.every(({ tasks }) => tasks.owner(name)));
  const makers = nodes.filter(({ registry }) => registry.vhosts.get(name.vhost)?.applications.has(name.app));
  t.deepEqual(ids(makers), ids([owner]));
});

test('a node that does not know a kind of tasks, or of calls, is passed over', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = await open(t, redis, { a: false, b: true });
  const strange = openTasks(await openNode(t, 'strange', { url: redis.url }), new CountingKind());
  t.teardown(() => strange.tasks.close());
  await openNode(t, 'old', { url: redis.url }).then((old) =>
    old.serve(async () => ({ status: 404, headers: {}, body: Buffer.alloc(0) })),
  );
  await until('all are known', () => a.cluster.nodes().filter(({ full }) => !full).length === 3);
  for (let n = 0; n < 10; n++) await a.everywhere.create(fakeName(`t${n}`), { does: 'wait' }, KEPT);
  t.is(b.kind.running.size, 10);
});

test('the tasks of a node that does not answer are of unknown state until it is lost, and then run elsewhere', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = await open(t, redis, { a: true, b: true });
  await b.tasks.createHere(fakeName('one'), { does: 'wait' }, KEPT);
  const application = a.registry.vhost('default').application('app');
  const state = async () => (await a.everywhere.list('fake', application))[0]?.state;
  await until('a knows it', async () => (await state()) === 'running');
  b.cluster.serve(() => new Promise(() => {}));
  t.is(await state(), 'unknown');
  await b.tasks.close();
  await until('it runs here', async () => a.kind.running.has('one') && (await state()) === 'running');
});

test('a task that is deleted while it is being created is there afterwards, and runs, or is not', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = await open(t, redis, { a: true, b: true });
  for (let n = 0; n < 15; n++) {
    const name = fakeName('one');
    const [created] = await Promise.allSettled([
      a.everywhere.create(name, { does: 'wait' }, KEPT),
      b.everywhere.remove(name),
      a.everywhere.remove(name),
    ]);
    t.is(created.status, 'fulfilled');
    await Promise.all([a, b].map(async ({ cluster }) => cluster.config.sync()));
    const isDefined = a.tasks.definitions.get(name) !== undefined;
    t.is(b.tasks.definitions.get(name) !== undefined, isDefined);
    t.is(a.kind.running.size + b.kind.running.size, isDefined ? 1 : 0);
    t.is(await a.everywhere.remove(name), isDefined);
  }
});
