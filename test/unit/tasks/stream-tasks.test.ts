import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { StorageError, type Change, type Cluster, type ConfigStore } from '#cluster';
import { definitionKey, taskKey } from '../../../src/tasks/definition.ts';
import { openAlone } from '../../support/cluster/cluster.ts';
import { CountingKind, countingName, publish, readTotal, write } from '../../support/tasks/counting-task.ts';
import { fakeName, FakeKind, openTasks } from '../../support/tasks/fake-task.ts';
import { until } from '../../support/time/until.ts';

const KEPT = { persistent: true, withinMs: 10_000 };
const ONE = countingName('one');
const LIVE = { stream: 'live' };

async function alone(t: ExecutionContext, cluster?: Cluster) {
  const node = openTasks(cluster ?? (await openAlone()), new CountingKind());
  t.teardown(async () => {
    await node.tasks.close();
    await node.cluster.close();
  });
  return node;
}

type Node = Awaited<ReturnType<typeof alone>>;

const runs = (node: Node, id = 'one') => until(`${id} runs`, () => node.kind.running.get(id));
const saved = ({ tasks }: Node) => readTotal(tasks.definitions.get(ONE)?.progress?.value).total;
const isFree = async ({ cluster }: Node) => (await cluster.ownerOf(taskKey(ONE))) === undefined;

/** A cluster whose configuration can be made to fail. */
async function failing() {
  const cluster = await openAlone();
  const store = { fails: false, writes: 0 };
  const config: ConfigStore = {
    get stale() {
      return cluster.config.stale;
    },
    get position() {
      return cluster.config.position;
    },
    entries: () => cluster.config.entries(),
    sync: () => cluster.config.sync(),
    listen: (listener) => cluster.config.listen(listener),
    write: async (changes: readonly Change[]) => {
      store.writes += 1;
      if (store.fails) throw new StorageError('the disk is full');
      await cluster.config.write(changes);
    },
  };
  const made = new Proxy(cluster, {
    get: (target, key) => {
      if (key === 'config') return config;
      const value = Reflect.get(target, key, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { cluster: made, store };
}

test('the progress of a task of a node that is alone outlives a restart, and is written while it runs', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-tasks-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'config.json');
  const first = openTasks(await openAlone(file), new CountingKind());
  await first.everywhere.create(ONE, LIVE, KEPT);
  const output = await publish(first, 'live');
  await runs(first);
  write(output, 30);
  await until('it is written down', () => saved(first) === 30);
  t.true(first.kind.running.has('one'));
  write(output, 4);
  await first.tasks.close();
  await first.cluster.close();
  const second = await alone(t, await openAlone(file));
  await publish(second, 'live');
  await runs(second);
  t.like(second.kind.begun[0], { total: 34, sequence: 2 });
});

test('progress that cannot be written down is not lost: the task stays, and goes on when its stream is back', async (t) => {
  const { cluster, store } = await failing();
  const node = await alone(t, cluster);
  await node.everywhere.create(ONE, LIVE, KEPT);
  const output = await publish(node, 'live');
  await runs(node);
  write(output, 7);
  store.fails = true;
  const before = store.writes;
  output.input.close('gone');
  await until('it was tried', () => store.writes > before);
  t.false(await isFree(node));
  const again = await publish(node, 'live');
  await runs(node);
  t.like(node.kind.begun.at(-1), { total: 7, sequence: 2 });
  write(again, 7);
  again.input.close('gone');
  await until('it was tried again', () => store.writes > before + 1);
  store.fails = false;
  await until('it waits', async () => saved(node) === 14 && (await isFree(node)));
});

test('an output or a change of nodes concerns the tasks that follow it, and no others of thousands', async (t) => {
  const cluster = await openAlone();
  const value = (stream: string) => ({ spec: { stream }, persistent: true, stored: false, uid: stream });
  await cluster.config.write(
    Array.from({ length: 5000 }, (_, n) => ({
      key: definitionKey(countingName(`t${n}`)),
      value: value(`s${n}`),
      seen: 0,
    })),
  );
  const node = await alone(t, cluster);
  await until('all are looked at', () => node.kind.asked >= 5000);
  await cluster.ownerOf('task');
  node.kind.asked = 0;
  const output = await publish(node, 's4711');
  await runs(node, 't4711');
  cluster.describe({ load: 0, full: true, info: {} });
  output.input.close('gone');
  const key = taskKey(countingName('t4711'));
  await until('it waits', async () => (await cluster.ownerOf(key)) === undefined);
  t.true(node.kind.asked < 100, `${node.kind.asked} times`);
});

test('tasks that end together are written down together', async (t) => {
  const { cluster, store } = await failing();
  const node = await alone(t, cluster);
  const ids = Array.from({ length: 150 }, (_, n) => `t${n}`);
  for (const id of ids) await node.everywhere.create(countingName(id), LIVE, KEPT);
  const output = await publish(node, 'live');
  await until('all run', () => node.kind.running.size === ids.length);
  write(output, 3);
  const before = store.writes;
  output.input.close('gone');
  await until('all are written down', () =>
    ids.every((id) => readTotal(node.tasks.definitions.get(countingName(id))?.progress?.value).total === 3),
  );
  t.true(store.writes - before <= 10, `${store.writes - before} writes`);
});

test('few of thousands of tasks without an owner are claimed at a time', async (t) => {
  const inner = await openAlone();
  let [atOnce, most, all] = [0, 0, 0];
  const cluster = new Proxy(inner, {
    get: (target, key) => {
      const value = Reflect.get(target, key, target) as unknown;
      if (key !== 'claim') return typeof value === 'function' ? value.bind(target) : value;
      return async (...claim: Parameters<Cluster['claim']>) => {
        most = Math.max(most, ++atOnce);
        all += 1;
        await new Promise((resolve) => setImmediate(resolve));
        atOnce -= 1;
        return await target.claim(...claim);
      };
    },
  });
  await inner.config.write(
    Array.from({ length: 500 }, (_, n) => ({
      key: definitionKey(fakeName(`t${n}`)),
      value: { spec: { does: 'wait' }, persistent: true, stored: false },
      seen: 0,
    })),
  );
  const node = openTasks(cluster, new FakeKind());
  t.teardown(() => node.tasks.close());
  await until('all run', () => node.kind.running.size === 500);
  t.is(all, 500, 'each is claimed once');
  t.true(most <= 32, `${most} at a time`);
});

test('a task of a kind, or with a spec, that this node does not know stays as it is, and can be deleted', async (t) => {
  const node = await alone(t);
  const strange = { ...ONE, kind: 'strange' };
  const [odd, two] = [countingName('odd'), countingName('two')];
  const common = { persistent: true, stored: false };
  await node.cluster.config.write([
    { key: definitionKey(strange), value: { ...common, spec: LIVE }, seen: 0 },
    { key: definitionKey(odd), value: { ...common, spec: { of: 'another version' } }, seen: 0 },
    { key: definitionKey(two), value: { ...common, spec: LIVE, later: 'unknown' }, seen: 0 },
  ]);
  const output = await publish(node, 'live');
  await runs(node, 'two');
  t.deepEqual([...node.kind.running.keys()], ['two']);
  write(output, 2);
  output.input.close('gone');
  const stored = (name: typeof two) => node.cluster.config.entries().get(definitionKey(name))?.value;
  await until('it is written down', () => JSON.stringify(stored(two)).includes('"total":2'));
  t.like(stored(two), { later: 'unknown' }, 'what another version has put there stays');
  for (const name of [strange, odd, two]) t.true(await node.everywhere.remove(name));
  t.is(node.cluster.config.entries().size, 0);
});

test('a task that is changed while it runs goes on with its progress as it is now, and follows another stream then', async (t) => {
  const node = await alone(t);
  await node.everywhere.create(ONE, LIVE, KEPT);
  const [live, other] = [await publish(node, 'live'), await publish(node, 'other')];
  await runs(node);
  write(live, 5);
  const change = async (spec: object): Promise<void> => {
    const entry = node.cluster.config.entries().get(definitionKey(ONE));
    const value = { ...(entry?.value as object), spec: { ...spec } };
    await node.cluster.config.write([{ key: definitionKey(ONE), value, seen: entry?.revision ?? 0 }]);
  };
  await change({ stream: 'other' });
  await until('it follows the other', () => node.kind.running.get('one')?.output === other);
  t.like(node.kind.begun.at(-1), { total: 5, sequence: 2 });
  write(other, 5);
  write(live, 5);
  await change({ stream: 'nowhere' });
  await until('it waits', async () => saved(node) === 10 && (await isFree(node)));
  await change(LIVE);
  await runs(node);
  t.like(node.kind.begun.at(-1), { total: 10, sequence: 3 });
});

test('a task that is deleted and made anew before its owner hears of it starts from nothing', async (t) => {
  const node = await alone(t);
  await node.everywhere.create(ONE, LIVE, KEPT);
  const output = await publish(node, 'live');
  await runs(node);
  write(output, 20);
  for (const uid of ['another', 'a third']) {
    const key = definitionKey(ONE);
    const seen = node.cluster.config.entries().get(key)?.revision ?? 0;
    const value = { spec: LIVE, persistent: true, stored: false, uid };
    const before = node.kind.begun.length;
    await node.cluster.config.write([
      { key, seen },
      { key, value, seen },
    ]);
    await until('it runs anew', () => node.kind.begun.length > before && node.kind.running.has('one'));
    t.like(node.kind.begun.at(-1), { total: 0, sequence: 1 });
  }
});

test('tasks that do not outlive a restart of their application go with it, running or waiting', async (t) => {
  const node = await alone(t);
  const { registry, cluster, tasks, everywhere, kind } = node;
  const put = async (applications: object): Promise<number> => {
    const entry = cluster.config.entries().get('stored');
    await cluster.config.write([
      { key: 'stored', value: { applications: [{ name: '*' }] }, seen: entry?.revision ?? 0 },
    ]);
    const app = cluster.config.entries().get('stored/app');
    await cluster.config.write([{ key: 'stored/app', value: { ...applications }, seen: app?.revision ?? 0 }]);
    return cluster.config.entries().get('stored/app')?.revision ?? 0;
  };
  const revision = await put({});
  registry.createVhost({ ...registry.vhost('default').config, name: 'stored', applications: [] }, false);
  const config = { ...registry.vhost('default').application('app').config };
  const application = registry.vhost('stored').createApplication(config, false, revision);
  const name = (id: string) => ({ ...countingName(id), vhost: 'stored' });
  const passing = { ...KEPT, persistent: false };
  await everywhere.create(name('kept'), LIVE, KEPT);
  await everywhere.create(name('passing'), LIVE, passing);
  await everywhere.create(name('waiting'), { stream: 'nowhere' }, passing);
  await everywhere.create(name('kept waiting'), { stream: 'nowhere' }, KEPT);
  const input = application.publish('live', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  const output = await publish(node, 'live');
  input.setTracks(output.tracks);
  const own = application.addOutput(input, 'live');
  own.setTracks(output.tracks);
  application.announce(own);
  await runs(node, 'kept');
  await runs(node, 'passing');
  application.close('changed');
  await put({ changed: true });
  await until('they are gone', () => [...tasks.definitions.names()].length === 2);
  t.deepEqual([...tasks.definitions.names()].map(({ id }) => id).sort(), ['kept', 'kept waiting']);
  t.is(kind.running.size, 0);
});
