import test from 'ava';
import { UnavailableError, type Cluster, type Json } from '#cluster';
import type { PlacedKind, Task } from '../../../src/tasks/kind.ts';
import { countingName, CountingKind, publish, write } from '../../support/tasks/counting-task.ts';
import { openTasks } from '../../support/tasks/fake-task.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const KEPT = { persistent: true, withinMs: 10_000 };
const NAME = { kind: 'errand', vhost: 'default', app: 'app', id: 'one' };

/** Tasks that run until they are told that they are complete. */
class ErrandKind implements PlacedKind {
  readonly name = 'errand';
  runs = 0;
  readonly running = new Map<string, Task>();
  #complete = (): void => {};

  complete(): void {
    this.#complete();
  }

  writeFailure(): Json | undefined {
    return undefined;
  }

  readFailure(): Error {
    return new Error('it failed elsewhere');
  }

  async run(task: Task): Promise<void> {
    this.runs += 1;
    this.running.set(task.name.id, task);
    task.started();
    task.keep(this.runs);
    await new Promise<void>((resolve) => {
      this.#complete = resolve;
      task.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.running.delete(task.name.id);
  }
}

/** From now on a node cannot write the configuration. */
function refuseWrites({ config }: Cluster): void {
  config.write = () => Promise.reject(new UnavailableError('the store does not take writes'));
}

test('a task that is complete is not run again by the node that inherits it; its definition is deleted', async (t) => {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, 1);
  const [a, b] = [
    openTasks(await cluster.open('a'), new ErrandKind()),
    openTasks(await cluster.open('b'), new ErrandKind()),
  ];
  t.teardown(() => Promise.all([a, b].map(({ tasks }) => tasks.close())));
  await a.tasks.createHere(NAME, null, KEPT);
  refuseWrites(a.cluster);
  a.kind.complete();
  await until('it is complete', () => a.kind.running.size === 0);
  await until('the store knows', async () => (await b.cluster.ownerOf('task/errand/default/app/one')) !== undefined);
  t.not(b.tasks.definitions.get(NAME), undefined);
  const end = performance.now() + 5000;
  await until('the definition cannot be deleted for a while', () => performance.now() > end);
  t.is(a.kind.runs, 1);
  cluster.kill('a');
  await until('its definition is gone', () => b.tasks.definitions.get(NAME) === undefined);
  t.is(b.kind.runs, 0);
});

test('a task that ends as soon as it has started is deleted, and does not run again', async (t) => {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, 1);
  const a = openTasks(await cluster.open('a'), new ErrandKind());
  t.teardown(() => a.tasks.close());
  const created = a.tasks.createHere(NAME, null, KEPT);
  await until('it runs', () => a.kind.running.size === 1);
  a.kind.complete();
  await created;
  await until('its definition is gone', () => a.tasks.definitions.get(NAME) === undefined);
  t.is(a.kind.runs, 1);
});

test('a task that is completed while its node is cut off does not run again when the node is back', async (t) => {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, 1);
  const a = openTasks(await cluster.open('a'), new CountingKind(undefined, 1));
  const b = openTasks(await cluster.open('b'), new CountingKind(undefined, 1));
  t.teardown(() => Promise.all([a, b].map(({ tasks }) => tasks.close())));
  const one = countingName('one');
  await a.everywhere.create(one, { stream: 'live', until: 10 }, KEPT);
  const output = await publish(a, 'live');
  const task = await until('it runs', () => a.kind.running.get('one'));
  cluster.cutStore(['a']);
  write(output, 10);
  await until('it is complete', () => !a.kind.running.has('one'));
  await until('its lease has ended', () => !task.valid);
  const end = performance.now() + 3000;
  await until('nobody runs it', () => performance.now() > end);
  cluster.heal();
  await until('its definition is gone', () => [a, b].every(({ tasks }) => tasks.definitions.get(one) === undefined));
  t.is(a.kind.begun.length + b.kind.begun.length, 1);
});

test('a task that was completed before another node took it over ends there', async (t) => {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, 1);
  const [a, b] = [
    openTasks(await cluster.open('a'), new ErrandKind()),
    openTasks(await cluster.open('b'), new ErrandKind()),
  ];
  t.teardown(() => Promise.all([a, b].map(({ tasks }) => tasks.close())));
  await a.tasks.createHere(NAME, null, KEPT);
  cluster.split(['a'], ['b']);
  cluster.cutStore(['a']);
  a.kind.complete();
  await until('it runs elsewhere', () => b.kind.running.size === 1);
  cluster.heal();
  await until('its definition is gone', () => [a, b].every(({ tasks }) => tasks.definitions.get(NAME) === undefined));
  await until('it runs nowhere', () => a.kind.running.size + b.kind.running.size === 0);
  t.is(a.kind.runs, 1);
  t.is(b.kind.runs, 1);
});
