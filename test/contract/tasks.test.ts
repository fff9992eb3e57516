import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test, { type ExecutionContext } from 'ava';
import { ranked, type Cluster } from '#cluster';
import { taskKey, type TaskName } from '../../src/tasks/definition.ts';
import { TaskExistsError } from '../../src/tasks/tasks.ts';
import { createVhost } from '../support/api/api.ts';
import { openNode, TIMING } from '../support/cluster/cluster.ts';
import { fakeName, FakeKind, openTasks } from '../support/tasks/fake-task.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const KEPT = { persistent: true, withinMs: PATIENCE_MS };

async function open(t: ExecutionContext, redis: RedisServer, id: string, kind = new FakeKind()) {
  const node = openTasks(await openNode(t, id, { url: redis.url }), kind);
  t.teardown(() => node.tasks.close());
  return node;
}

type Node = Awaited<ReturnType<typeof open>>;

const sees = (count: number, ...nodes: { cluster: Cluster }[]) =>
  until(`${count} nodes see that all take tasks`, () =>
    nodes.every(
      ({ cluster }) => cluster.nodes().filter(({ state, full }) => state === 'ready' && !full).length === count,
    ),
  );
const runner = (id: string, ...nodes: Node[]) => nodes.filter(({ kind }) => kind.running.has(id));

/** Acts of tasks, of all processes, and who of them are there. */
class Acts {
  readonly #acts: { readonly task: string; readonly fence: number; readonly at: bigint; readonly by: string }[] = [];
  readonly #children = new Map<string, ChildProcess>();
  readonly #redis: RedisServer;

  constructor(t: ExecutionContext, redis: RedisServer) {
    this.#redis = redis;
    t.teardown(() => [...this.#children.values()].forEach((child) => child.kill('SIGKILL')));
  }

  async start(id: string): Promise<void> {
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, '../support/tasks/task-child.ts'), this.#redis.url, id],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    this.#children.set(id, child);
    let ready = false;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [what, task = '', fence, at] = line.split(' ');
      ready ||= what === 'ready';
      if (what === 'act')
        this.#acts.push({ task, fence: Number(fence), at: BigInt(at ?? 0), by: `${id}/${child.pid}` });
    });
    await until(`${id} is ready`, () => ready);
  }

  signal(id: string, name: NodeJS.Signals): void {
    this.#children.get(id)?.kill(name);
  }

  /** Tasks that acted since a moment, by any of `ids`. */
  since(moment: bigint, ids: readonly string[]): Set<string> {
    return new Set(
      this.#acts
        .filter(({ at, by }) => at > moment && ids.some((id) => by.startsWith(`${id}/`)))
        .map(({ task }) => task),
    );
  }

  /** Where the same task acted in two places at once, or an earlier owner after a later one. */
  overlaps(): string[] {
    const sorted = this.#acts.toSorted((a, b) => (a.at < b.at ? -1 : 1));
    const latest = new Map<string, { fence: number; by: string }>();
    return sorted.flatMap(({ task, fence, by }) => {
      const before = latest.get(task);
      latest.set(task, { fence, by });
      return before !== undefined && (fence < before.fence || (fence === before.fence && by !== before.by))
        ? [`${task}: ${by} with ${fence} after ${before.by} with ${before.fence}`]
        : [];
    });
  }
}

test('a task is begun where it is created, once, and runs elsewhere when its node leaves', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = [await open(t, redis, 'a'), await open(t, redis, 'b')];
  await sees(2, a, b);
  await a.tasks.createHere(fakeName('one'), { does: 'wait' }, KEPT);
  t.deepEqual(runner('one', a, b), [a]);
  await t.throwsAsync(b.tasks.createHere(fakeName('one'), { does: 'wait' }, KEPT), { instanceOf: TaskExistsError });
  const fence = a.kind.running.get('one')?.fence ?? 0;
  await a.tasks.close();
  const task = await until('b has it', () => b.kind.running.get('one'));
  t.is(a.kind.running.size, 0);
  t.true(task.fence > fence);
  t.is(task.progress, 1, 'what the first run kept');
  t.true(await b.tasks.remove(fakeName('one')));
  t.is(b.kind.running.size, 0);
  t.false(await b.tasks.remove(fakeName('one')));
});

test('of two that create the same task at once one does', async (t) => {
  const redis = await RedisServer.start(t);
  const nodes = [await open(t, redis, 'a'), await open(t, redis, 'b'), await open(t, redis, 'c')];
  const outcomes = await Promise.allSettled(
    nodes.map(({ tasks }) => tasks.createHere(fakeName('one'), { does: 'wait' }, KEPT)),
  );
  t.is(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
  t.is(runner('one', ...nodes).length, 1);
});

test('a task that fails at its creation leaves nothing; later its owner tries it again; one that is over is deleted', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await open(t, redis, 'a');
  await t.throwsAsync(a.tasks.createHere(fakeName('bad'), { does: 'fail' }, KEPT), { message: 'it fails' });
  t.is(await a.cluster.ownerOf('task/fake/default/app/bad'), undefined);
  t.deepEqual([...a.tasks.definitions.names()], []);
  await a.cluster.config.write([
    {
      key: '%23task/fake/default/app/bad',
      value: { spec: { does: 'fail' }, persistent: true, stored: false },
      seen: 0,
    },
    {
      key: '%23task/fake/default/app/short',
      value: { spec: { does: 'end' }, persistent: true, stored: false },
      seen: 0,
    },
  ]);
  await until('it was tried again', () => (a.kind.runs.get('bad') ?? 0) > 2);
  await until('the short one is gone', () => a.tasks.definitions.get(fakeName('short')) === undefined);
  t.is(a.kind.runs.get('short'), 1);
  await a.tasks.remove(fakeName('bad'));
});

test('a drained node hands its tasks over, with little between; a node that has no other to hand them to keeps them', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await open(t, redis, 'a');
  const ids = Array.from({ length: 20 }, (_, n) => `t${n}`);
  await Promise.all(ids.map((id) => a.tasks.createHere(fakeName(id), { does: 'wait' }, KEPT)));
  await a.cluster.drain('a');
  await until('it drains', () => a.cluster.draining);
  t.is(a.kind.running.size, 20);
  await a.cluster.undrain('a');
  const [b, c] = [await open(t, redis, 'b'), await open(t, redis, 'c')];
  await sees(3, a, b, c);
  const gaps = new Map<string, number>();
  const left = new Map<string, number>();
  const watch = setInterval(() => {
    for (const id of ids) {
      if (runner(id, a, b, c).length === 0) left.set(id, left.get(id) ?? performance.now());
      else if (left.has(id) && !gaps.has(id)) gaps.set(id, performance.now() - (left.get(id) as number));
    }
  }, 5);
  await b.cluster.drain('a');
  await until('all are elsewhere', () => b.kind.running.size + c.kind.running.size === 20);
  clearInterval(watch);
  t.is(a.kind.running.size, 0);
  t.true(b.kind.running.size > 3 && c.kind.running.size > 3, `${b.kind.running.size} and ${c.kind.running.size}`);
  t.log(`longest gap ${Math.round(Math.max(0, ...gaps.values()))} ms`);
  await b.cluster.undrain('a');
  await until('ready again', () => !a.cluster.draining);
  t.is(b.kind.running.size + c.kind.running.size, 20, 'they stay');
});

test('a node that has the application of a task, but no room for it, leaves it to others', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = [await open(t, redis, 'a'), await open(t, redis, 'b')];
  await sees(2, a, b);
  for (const { registry } of [a, b])
    createVhost(registry, { name: 'wide', host: { names: ['wide'] }, applications: [{ name: '*', type: 'live' }] });
  const names = Array.from({ length: 100 }, (_, n) => ({ ...fakeName(`t${n}`), vhost: 'wide', app: 'wanted' }));
  const name = names.find((candidate) => ranked(taskKey(candidate), a.cluster.nodes())[0] === 'a') as TaskName;
  for (let n = 0; n < 1000; n++) {
    a.registry
      .vhost('wide')
      .demandApplication(`a${n}`)
      .publish('s', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  }
  await b.tasks.definitions.create(name, { spec: { does: 'wait' }, persistent: true, stored: false });
  await until('the other runs it', () => b.kind.running.has(name.id));
  t.is(a.kind.running.size, 0);
});

test('a drained node keeps what no other certainly has the application of', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = [await open(t, redis, 'a'), await open(t, redis, 'b')];
  const describe = ({ cluster }: Node, configHash: string) =>
    cluster.describe({ load: 0, full: false, info: { configHash } });
  describe(a, 'one');
  describe(b, 'other');
  await until(
    'they are known',
    () => a.cluster.nodes().length === 2 && a.cluster.nodes().every(({ info }) => info.configHash !== undefined),
  );
  await a.tasks.createHere(fakeName('one'), { does: 'wait' }, KEPT);
  await a.cluster.drain('a');
  await until('it drains', () => a.cluster.draining);
  t.is(runner('one', a, b)[0], a);
  t.is(a.kind.running.get('one')?.signal.aborted, false);
  describe(b, 'one');
  await until('it is handed over', () => b.kind.running.has('one'));
});

test('a task that was deleted on another node than its own does not run any more', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = [await open(t, redis, 'a'), await open(t, redis, 'b')];
  await sees(2, a, b);
  for (let n = 0; n < 10; n++) {
    await a.tasks.createHere(fakeName('one'), { does: 'wait' }, KEPT);
    await until('b knows it', () => b.tasks.definitions.get(fakeName('one')) !== undefined);
    t.true(await b.tasks.remove(fakeName('one')));
    t.is(a.kind.running.size, 0);
  }
});

test('tasks end with what they belong to, and outlive a restart of it if they are persistent', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await open(t, redis, 'a');
  const vhost = a.registry.vhost('default');
  await a.tasks.createHere(fakeName('kept'), { does: 'wait' }, KEPT);
  await a.tasks.createHere(fakeName('short'), { does: 'wait' }, { ...KEPT, persistent: false });
  const { config } = vhost.application('app');
  vhost.application('app').close('changed');
  const again = vhost.createApplication(config);
  await until('one runs again', () => a.kind.runs.get('kept') === 2);
  await until('the other is gone', () => a.tasks.definitions.get(fakeName('short')) === undefined);
  t.is(a.kind.running.get('kept')?.application, again);
  await a.cluster.config.write([
    { key: '%23task/fake/gone/app/left', value: { spec: { does: 'wait' }, persistent: true, stored: true }, seen: 0 },
  ]);
  const left = { ...fakeName('left'), vhost: 'gone' };
  await until('so is what is left of a virtual host', () => a.tasks.definitions.get(left) === undefined);
  t.is(a.kind.runs.get('left'), undefined);
});

test('never two run a task: nodes are killed, stopped, drained and started, and Redis is emptied', async (t) => {
  const redis = await RedisServer.start(t);
  const acts = new Acts(t, redis);
  for (const id of ['x', 'y', 'z']) await acts.start(id);
  const here = await open(t, redis, 'here');
  await sees(4, here);
  const ids = Array.from({ length: 12 }, (_, n) => `t${n}`);
  await Promise.all(ids.map((id) => here.tasks.createHere(fakeName(id), { does: 'wait' }, KEPT)));
  await here.cluster.drain('here');
  const now = () => process.hrtime.bigint();
  const all = async (what: string, by: readonly string[], moment = now()) =>
    until(`${what}: all act`, () => acts.since(moment, by).size === ids.length);
  await all('handed over', ['x', 'y', 'z']);
  acts.signal('x', 'SIGKILL');
  await all('one is dead', ['y', 'z']);
  acts.signal('y', 'SIGSTOP');
  await all('one is stopped', ['z']);
  await acts.start('x');
  acts.signal('y', 'SIGCONT');
  await sees(3, here);
  await here.cluster.drain('z');
  await all('one is drained', ['x', 'y']);
  await here.cluster.undrain('z');
  const before = now();
  await redis.kill();
  await until('degraded', () => here.cluster.state === 'degraded');
  await all('Redis is away', ['x', 'y', 'z'], before);
  await redis.run();
  await until('connected', () => here.cluster.state === 'connected');
  const back = now();
  await until('two times to live', () => now() - back > BigInt(2 * TIMING.ttl) * 1_000_000n);
  await all('Redis is back', ['x', 'y', 'z']);
  await here.cluster.config.sync();
  t.is([...here.tasks.definitions.names()].length, ids.length);
  t.deepEqual(acts.overlaps(), []);
});
