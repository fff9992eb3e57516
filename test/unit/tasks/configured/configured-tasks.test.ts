import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Cluster } from '#cluster';
import { kilnError } from '../../../../src/errors.ts';
import { ConfiguredTasks } from '../../../../src/tasks/configured/configured-tasks.ts';
import type { ConfiguredEntry, ConfiguredKind } from '../../../../src/tasks/configured/kind.ts';
import { openAlone } from '../../../support/cluster/cluster.ts';
import { CountingKind, publish, readTotal, write } from '../../../support/tasks/counting-task.ts';
import { openTasks } from '../../../support/tasks/fake-task.ts';
import { MemoryCluster } from '../../../support/memory-cluster/cluster.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

let ids = 0;

/** An entry for the streams whose names match. */
function entry(key: string, streams: RegExp): ConfiguredEntry {
  return {
    key,
    place: key,
    task: ({ name }) => {
      if (name === 'impossible') throw kilnError('taskInvalid', 'it cannot be');
      return streams.test(name) ? { id: `${key}-${++ids}`, spec: { stream: name } } : undefined;
    },
  };
}

/** A node with tasks that the configuration asks for: entries that a test replaces. */
async function open(t: ExecutionContext, cluster: Cluster, entries: ConfiguredEntry[] = [entry('a', /^live/)]) {
  const node = openTasks(cluster, new CountingKind());
  const settings = { entries };
  const kind: ConfiguredKind = { name: 'counting', entries: async () => settings.entries };
  const lines: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(line) });
  const configured = new ConfiguredTasks({ ...node, kinds: [kind], log });
  configured.start();
  const close = async (): Promise<void> => {
    configured.close();
    await node.tasks.close();
  };
  t.teardown(async () => {
    await close();
    const failed = lines.filter((line) => line.includes('"level":50'));
    if (failed.length > 0) throw new Error(failed.join(''));
  });
  /** Keys of the entries whose tasks run here, in order. */
  const here = (): string =>
    [...node.kind.running.keys()]
      .map((id) => id.split('-')[0])
      .sort()
      .join();
  return { ...node, settings, configured, here, lines, close };
}

type Node = Awaited<ReturnType<typeof open>>;

const defined = ({ tasks }: Node): string[] => [...tasks.definitions.names()].map(({ id }) => id).sort();

/** Waits until a few looks at the entries have gone by. */
async function looks(): Promise<void> {
  const end = performance.now() + 6000;
  await until('entries are looked at again', () => performance.now() > end);
}

async function alone(t: ExecutionContext, entries?: ConfiguredEntry[]): Promise<Node> {
  virtualTime(t);
  const cluster = await openAlone();
  const node = await open(t, cluster, entries);
  t.teardown(() => cluster.close());
  return node;
}

async function nodesOf(t: ExecutionContext, ...names: readonly string[]) {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, 1);
  const nodes: Node[] = [];
  for (const id of names) nodes.push(await open(t, await cluster.open(id)));
  await until('all see all', () => nodes.every((node) => node.cluster.nodes().length === names.length));
  return { cluster, nodes };
}

test.serial(
  'a task begins with each stream that an entry names, and is gone with it; the next stream has a new one',
  async (t) => {
    const node = await alone(t, [entry('a', /^live/), entry('b', /^live2$/)]);
    const first = await publish(node, 'live1');
    const second = await publish(node, 'live2');
    await publish(node, 'other');
    await until('they run', () => node.here() === 'a,a,b');
    const [one] = defined(node);
    write(first, 5);
    first.input.close('gone');
    await until('one is gone', () => node.here() === 'a,b' && defined(node).length === 2);
    const again = await publish(node, 'live1');
    await until('another one runs', () => node.here() === 'a,a,b');
    t.false(defined(node).includes(one as string));
    t.is(node.kind.begun.at(-1)?.total, 0);
    second.input.close('gone');
    again.input.close('gone');
    await until('none is left', () => defined(node).length === 0);
    const names = node.kind.begun.length;
    await looks();
    t.is(node.kind.begun.length, names);
  },
);

test.serial(
  'a stream that replaces another of its name has a task of its own, and that of the other never runs for it',
  async (t) => {
    const node = await alone(t);
    const first = await publish(node, 'live');
    await until('it runs', () => node.here() === 'a');
    const outputs = new Set([...node.kind.running.values()].map(({ output }) => output));
    first.input.close('replaced');
    const second = await publish(node, 'live');
    await until('the other runs', () => node.kind.begun.length === 2 && node.here() === 'a');
    await looks();
    t.is(node.kind.begun.length, 2);
    t.is(defined(node).length, 1);
    t.deepEqual(
      [...node.kind.running.values()].map(({ output }) => output),
      [second],
    );
    t.false(outputs.has(second));
  },
);

test.serial('live streams cost nothing as long as the entries of stream maps are the same', async (t) => {
  let reads = 0;
  const counted = Array.from({ length: 50 }, (_, index) => {
    const { task, place } = entry(`${index}`, index < 3 ? /^live/ : /^other/);
    return {
      place,
      task,
      get key() {
        reads++;
        return String(index);
      },
    };
  });
  const node = await alone(t, counted);
  await publish(node, 'live');
  await until('they run', () => node.here() === '0,1,2');
  t.true(reads < 50 * 10, `${reads} reads`);
  await looks();
  const before = reads;
  await looks();
  t.is(reads, before);
});

test.serial('entries that change begin and end tasks of live streams; the others go on untouched', async (t) => {
  const node = await alone(t, [entry('a', /^live/), entry('b', /^live/)]);
  await publish(node, 'live');
  await until('they run', () => node.here() === 'a,b');
  const kept = [...node.kind.running.values()].find(({ name }) => name.id.startsWith('a'));
  node.settings.entries = [entry('a', /^live/), entry('c', /^live/)];
  await until('one for the other', () => node.here() === 'a,c' && defined(node).length === 2);
  t.false(kept?.signal.aborted);
  node.settings.entries = [];
  await until('none', () => node.here() === '' && defined(node).length === 0);
  node.settings.entries = [entry('a', /^live/)];
  await until('again', () => node.here() === 'a');
  t.not(node.kind.running.keys().next().value, kept?.name.id);
});

test.serial('a task that is stopped through the API stays stopped as long as its stream is live', async (t) => {
  const node = await alone(t);
  const output = await publish(node, 'live');
  const [name] = await until('it runs', () => {
    const running = [...node.kind.running.values()].map((task) => task.name);
    return running.length === 1 && running;
  });
  const rows = await node.everywhere.list('counting', node.registry.vhost('default').application('app'));
  t.is(rows[0]?.definition.origin?.entry, 'a');
  t.true(await node.everywhere.remove(name as NonNullable<typeof name>));
  node.settings.entries = [...node.settings.entries, entry('b', /^live/)];
  await until('the new one runs', () => node.here() === 'b');
  await looks();
  t.is(node.here(), 'b');
  output.input.close('gone');
  await until('all are gone', () => defined(node).length === 0);
  await publish(node, 'live');
  await until('both run for the next stream', () => node.here() === 'a,b');
});

test.serial(
  'an entry that makes no valid task for a stream is named in the log once, and runs for others',
  async (t) => {
    const node = await alone(t, [entry('a', /./)]);
    await publish(node, 'impossible');
    await publish(node, 'live');
    await until('it runs', () => node.here() === 'a');
    await looks();
    const warned = node.lines.filter((line) => line.includes('"level":40'));
    t.is(warned.length, 1);
    t.regex(warned[0] ?? '', /"stream":"#default#app\/impossible".*"entry":"a".*it cannot be/);
  },
);

test.serial(
  'an id that is in use is not taken from its task: another one is tried, and then the entry is given up',
  async (t) => {
    const fixed = { ...entry('a', /./), task: () => ({ id: 'fixed', spec: { stream: 'live' } }) };
    const node = await alone(t, [fixed, entry('b', /./)]);
    const name = { kind: 'counting', vhost: 'default', app: 'app', id: 'fixed' };
    await node.everywhere.create(name, { stream: 'elsewhere' }, { persistent: true, withinMs: 1000 });
    await publish(node, 'live');
    await until('the other runs', () => node.here() === 'b');
    await until('it is in the log', () => node.lines.some((line) => line.includes('the id fixed is in use')));
    await looks();
    t.is(node.lines.filter((line) => line.includes('the id fixed is in use')).length, 1);
    t.deepEqual(node.tasks.definitions.get(name)?.spec, { stream: 'elsewhere' });
  },
);

test.serial(
  'a node that is killed leaves its task to the node that has the stream next: it goes on with what it has counted',
  async (t) => {
    const { cluster, nodes } = await nodesOf(t, 'a', 'b', 'c');
    const [a, b, c] = nodes as [Node, Node, Node];
    write(
      await publish(a, 'live').then(async (output) => {
        await until('it runs', () => a.here() === 'a');
        return output;
      }),
      20,
    );
    const [id] = defined(a);
    await until('others know of it', () => defined(c)[0] === id);
    const end = performance.now() + 2000;
    await until('what it has counted is in the store', () => performance.now() > end);
    cluster.kill('a');
    const output = await publish(b, 'live');
    await until('it runs there', () => b.here() === 'a');
    t.deepEqual(defined(b), [id]);
    t.is(c.here(), '');
    write(output, 1);
    await until('it goes on', () => readTotal(b.kind.running.values().next().value?.progress).total >= 0);
    t.is(b.kind.begun.length, 1);
    t.like(b.kind.begun[0], { total: 20, sequence: 2 });
    output.input.close('gone');
    await until('it is gone', () => defined(c).length === 0);
  },
);

test.serial('tasks of a dead node whose streams do not return are deleted by the others', async (t) => {
  const { cluster, nodes } = await nodesOf(t, 'a', 'b', 'c');
  const [a, b, c] = nodes as [Node, Node, Node];
  await publish(a, 'live1');
  await publish(a, 'live2');
  const own = await publish(b, 'live3');
  await until('they run', () => a.here() === 'a,a' && b.here() === 'a');
  await until('others know of them', () => defined(c).length === 3);
  cluster.kill('a');
  const since = performance.now();
  await until('they are deleted', () => defined(c).length === 1, 200_000);
  t.true(performance.now() - since > 50_000, 'not before the publisher may have returned');
  t.is(b.here(), 'a');
  t.false(own.closed);
});

test.serial('a stream that moves while its old node lives has one task, here and there', async (t) => {
  const { nodes } = await nodesOf(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  const first = await publish(a, 'live');
  await until('it runs', () => a.here() === 'a');
  first.input.close('moved');
  await publish(b, 'live');
  await until('it runs there', () => b.here() === 'a');
  await looks();
  t.is(a.here(), '');
  t.is(b.kind.running.size, 1);
  t.is(defined(a).length, 1);
});

test.serial(
  'a node that stops leaves its tasks for the next start, which continues those whose streams return',
  async (t) => {
    virtualTime(t);
    const cluster = MemoryCluster.create(t, 1);
    const first = await open(t, await cluster.open('a'));
    const output = await publish(first, 'live');
    await until('it runs', () => first.here() === 'a');
    write(output, 7);
    await first.close();
    first.registry.close('the server is stopping');
    await first.cluster.close();
    const second = await open(t, await cluster.open('a'));
    t.is(defined(second).length, 1);
    await publish(second, 'live');
    await until('it runs again', () => second.here() === 'a');
    t.is(defined(second).length, 1);
    t.like(second.kind.begun[0], { total: 7, sequence: 2 });
  },
);

test.serial('tasks are not lost while the store is away: changes are written when it is back', async (t) => {
  const { cluster, nodes } = await nodesOf(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  const gone = await publish(a, 'live1');
  await publish(a, 'live2');
  await until('they run', () => a.here() === 'a,a');
  cluster.cutStore();
  await until('the store is away', () => a.cluster.state === 'degraded');
  gone.input.close('gone');
  a.settings.entries = [...a.settings.entries, entry('b', /^live2/)];
  await looks();
  cluster.heal();
  await until('both run', () => a.here() === 'a,b', 60_000);
  await until('what is over is gone', () => defined(b).length === 2);
  t.is(a.kind.begun.length, 3 + a.kind.begun.filter(({ sequence }) => sequence > 1).length);
});

test.serial('a node that was cut off for long defines again what the others have deleted', async (t) => {
  const { cluster, nodes } = await nodesOf(t, 'a', 'b', 'c');
  const [a, b] = nodes as [Node, Node, Node];
  await publish(a, 'live');
  await until('it runs', () => a.here() === 'a' && defined(b).length === 1);
  cluster.cutStore(['a']);
  cluster.split(['a'], ['b', 'c']);
  await until('the others have deleted it', () => defined(b).length === 0, 200_000);
  cluster.heal();
  await until('it runs again', () => a.here() === 'a' && defined(b).length === 1, 100_000);
  t.is(b.kind.begun.length, 0);
});

for (const meanwhile of ['nothing', 'its task was deleted', 'its entries have changed'] as const) {
  test.serial(
    `a node that comes back leaves the task to the node that has the stream by now; meanwhile: ${meanwhile}`,
    async (t) => {
      const { cluster, nodes } = await nodesOf(t, 'a', 'b', 'c');
      const [a, b, c] = nodes as [Node, Node, Node];
      await publish(a, 'live');
      await until('it runs', () => a.here() === 'a' && defined(b).length === 1);
      cluster.cutStore(['a']);
      cluster.split(['a'], ['b', 'c']);
      if (meanwhile === 'its task was deleted') await until('it was deleted', () => defined(b).length === 0, 200_000);
      const output = await publish(b, 'live');
      await until('it runs there', () => b.here() === 'a');
      const begun = b.kind.begun.length;
      if (meanwhile === 'its entries have changed') a.settings.entries = [...a.settings.entries, entry('new', /^live/)];
      cluster.heal();
      await until('the other has left', () => a.cluster.state === 'connected' && a.here() === '');
      await looks();
      t.is(b.here(), 'a');
      t.is(b.kind.begun.length, begun);
      t.is(a.here(), '');
      t.is(defined(c).length, 1);
      t.false(output.closed);
    },
  );
}
