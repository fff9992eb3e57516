import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { UnavailableError, type Change, type Json } from '#cluster';
import { Registry } from '../../../src/core/registry.ts';
import { TaskCounts } from '../../../src/tasks/counts.ts';
import type { TaskDefinition } from '../../../src/tasks/definition.ts';
import { TaskDefinitions } from '../../../src/tasks/definitions.ts';
import { TaskEnd } from '../../../src/tasks/kind.ts';
import { TaskRunner } from '../../../src/tasks/runner.ts';
import { openAlone } from '../../support/cluster/cluster.ts';
import { FakeLease, HeldKind, HeldStreamKind, publishLive } from '../../support/tasks/held-task.ts';
import { addVhost } from '../../support/server/live.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const NAME = { kind: 'held', vhost: 'default', app: 'app', id: 'one' };
const DEFINITION: TaskDefinition = { spec: { n: 1 }, persistent: true, stored: false, uid: 'u' };
const CHANGED: TaskDefinition = { ...DEFINITION, spec: { n: 2 } };
const REMOVED = new TaskEnd('removed', 'the test deletes it');
const HANDED_OVER = new TaskEnd('handedOver', 'the test hands it over');

interface Setting<K> {
  readonly kind: K;
  readonly lease?: FakeLease;
  readonly isNew?: boolean;
}

/** A runner of one task, and the writes of the configuration that wait for the test when `holdWrites` was called. */
async function open<K extends HeldKind | HeldStreamKind>(t: ExecutionContext, setting: Setting<K>) {
  virtualTime(t);
  const { kind, lease = new FakeLease(), isNew = false } = setting;
  const cluster = await openAlone();
  const registry = new Registry();
  addVhost(registry);
  const definitions = new TaskDefinitions(cluster.config);
  if (!isNew) await definitions.create(NAME, DEFINITION);
  const counts = new TaskCounts().of(kind.name);
  const last: (Json | undefined)[] = [];
  const start = () =>
    new TaskRunner({
      kind,
      name: NAME,
      definition: DEFINITION,
      definitions,
      counts,
      registry,
      cluster,
      lease,
      onLast: (report) => last.push(report),
      isNew,
      unsaved: undefined,
      standIn: undefined,
      log: pino({ level: 'silent' }),
    });
  const writes: PromiseWithResolvers<void>[] = [];
  const write = cluster.config.write.bind(cluster.config);
  const holdWrites = (): void => {
    cluster.config.write = async (changes: readonly Change[], expected) => {
      const held = Promise.withResolvers<void>();
      writes.push(held);
      await held.promise;
      await write(changes, expected);
    };
  };
  t.teardown(() => cluster.close());
  return { kind, lease, registry, definitions, counts, last, start, writes, holdWrites, cluster };
}

const away = () => new UnavailableError('the store is away');

/** Fails until the pauses between attempts are long. @returns the number of runs so far */
async function failOften(kind: HeldKind | HeldStreamKind): Promise<number> {
  for (let n = 1; n <= 7; n++) {
    await until('it runs again', () => kind.runs.length === n);
    kind.last?.end(new Error('it fails'));
  }
  await setImmediate();
  return kind.runs.length;
}

test('a runner whose lease is already lost ends without a run', async (t) => {
  const { kind, lease, start } = await open(t, { kind: new HeldKind() });
  lease.lose();
  const runner = start();
  await runner.over;
  t.is(kind.runs.length, 0);
  t.true(lease.isReleased);
  await t.throwsAsync(runner.started, { name: 'TaskEnd', message: 'the lease was lost' });
});

test('a lease that is lost ends a run and a pause', async (t) => {
  const running = await open(t, { kind: new HeldKind() });
  const runner = running.start();
  await until('it runs', () => runner.isRunning);
  running.lease.lose();
  t.like(running.kind.last?.task.signal.reason, { reason: 'lost' });
  t.false(running.kind.last?.task.valid);
  await runner.over;
  const pausing = await open(t, { kind: new HeldKind() });
  const other = pausing.start();
  const runs = await failOften(pausing.kind);
  pausing.lease.lose();
  await other.over;
  t.is(pausing.kind.runs.length, runs);
});

test('a task is handed over when another node gets the stream that the configuration asks for', async (t) => {
  const { kind, start, lease } = await open(t, { kind: new HeldKind() });
  const runner = start();
  await until('it runs', () => runner.isRunning);
  runner.define({ ...DEFINITION, origin: { entry: 'e', node: 'another', output: 'live', number: 1 } });
  t.like(kind.last?.task.signal.reason, { reason: 'handedOver' });
  await runner.over;
  t.true(lease.isReleased);
});

test('a run is running until it has ended, also after it was stopped', async (t) => {
  const { kind, start, last, lease, counts } = await open(t, { kind: new HeldKind() });
  kind.isSlow = true;
  kind.onRun = (task) => {
    task.show(() => 'its state');
    task.handsOver(() => {});
  };
  const runner = start();
  t.false(runner.isRunning);
  t.false(runner.isUseful);
  await until('it runs', () => runner.isRunning);
  t.true(runner.isUseful);
  t.true(runner.isInterruptible);
  t.is(runner.report, 'its state');
  t.deepEqual(last, [undefined]);
  void runner.stop(REMOVED);
  void runner.stop(HANDED_OVER);
  await setImmediate();
  t.is(kind.last?.task.signal.reason, REMOVED);
  t.true(runner.isRunning);
  t.is(runner.report, 'its state');
  t.false(lease.isReleased);
  kind.last?.end();
  await runner.over;
  t.false(runner.isRunning);
  t.false(runner.isInterruptible);
  t.is(runner.report, undefined);
  t.deepEqual(last, [undefined, 'its state']);
  t.deepEqual(counts, { started: 1, failed: 0, takenOver: 0 });
});

test('the last state is reported only of a task that was deleted', async (t) => {
  const { kind, start, last } = await open(t, { kind: new HeldKind() });
  kind.onRun = (task) => task.show(() => 'its state');
  const runner = start();
  await until('it runs', () => runner.isRunning);
  await runner.stop(HANDED_OVER);
  t.deepEqual(last, [undefined]);
});

test('a change while a stopped run is ending begins no other one', async (t) => {
  const { kind, start } = await open(t, { kind: new HeldKind() });
  kind.isSlow = true;
  const runner = start();
  await until('it runs', () => runner.isRunning);
  void runner.stop(HANDED_OVER);
  runner.define(CHANGED);
  t.is(kind.last?.task.signal.reason, HANDED_OVER);
  kind.last?.end(new Error('it fails at its end'));
  await runner.over;
  t.is(kind.runs.length, 1);
});

test('a task that is deleted while a changed run is ending begins no other one, and its state is reported', async (t) => {
  const { kind, start, last } = await open(t, { kind: new HeldKind() });
  kind.isSlow = true;
  kind.onRun = (task) => task.show(() => 'its state');
  const runner = start();
  await until('it runs', () => runner.isRunning);
  runner.define(CHANGED);
  t.like(kind.last?.task.signal.reason, { reason: 'changed' });
  void runner.stop(REMOVED);
  kind.last?.end();
  await runner.over;
  t.is(kind.runs.length, 1);
  t.deepEqual(last, [undefined, 'its state']);
});

test('a changed task runs anew without a pause, with its progress', async (t) => {
  const { kind, start, counts } = await open(t, { kind: new HeldKind() });
  const runner = start();
  await until('it runs', () => runner.isRunning);
  kind.last?.task.keep('so far');
  runner.define(CHANGED);
  await until('it runs anew', () => kind.runs.length === 2);
  t.deepEqual(kind.last?.task.spec, { n: 2 });
  t.is(kind.last?.task.progress, 'so far');
  t.deepEqual(counts, { started: 2, failed: 0, takenOver: 0 });
  await runner.stop(REMOVED);
});

test('a pause after failures ends at once when the task is changed', async (t) => {
  const { kind, start, counts } = await open(t, { kind: new HeldKind() });
  const runner = start();
  const runs = await failOften(kind);
  t.false(runner.isRunning);
  t.is(counts.failed, runs);
  runner.look();
  await setImmediate();
  t.is(kind.runs.length, runs, 'a stream that may be back does not end this pause');
  runner.define(CHANGED);
  await until('it runs anew', () => kind.runs.length > runs, 500);
  await runner.stop(REMOVED);
});

test('a pause after failures ends at once when the task is stopped or handed over', async (t) => {
  for (const end of ['stop', 'handOver'] as const) {
    const { kind, start, lease } = await open(t, { kind: new HeldKind() });
    const runner = start();
    const runs = await failOften(kind);
    if (end === 'stop') void runner.stop(REMOVED);
    else runner.handOver(HANDED_OVER, new AbortController().signal);
    await until('it has ended', () => lease.isReleased, 500);
    t.is(kind.runs.length, runs);
  }
});

test('a pause after failures ends at once when an earlier owner has completed the task, which is deleted', async (t) => {
  const { kind, start, definitions } = await open(t, { kind: new HeldKind() });
  const runner = start();
  const runs = await failOften(kind);
  runner.define({ ...DEFINITION, progress: { uid: 'u', fence: 0, step: 1, value: null, over: true } });
  await until('it is deleted', () => definitions.get(NAME) === undefined, 500);
  await runner.over;
  t.is(kind.runs.length, runs);
});

test('a run that fails after it has lasted is tried again at once', async (t) => {
  const { kind, start } = await open(t, { kind: new HeldKind() });
  const runner = start();
  const runs = await failOften(kind);
  await until('it runs again', () => kind.runs.length > runs);
  const begun = performance.now();
  await until('it lasts', () => performance.now() > begun + 15_000);
  kind.last?.end(new Error('it fails'));
  await until('it runs again soon', () => kind.runs.length > runs + 1, 500);
  await runner.stop(REMOVED);
  t.is(kind.runs.length, runs + 2);
});

test('a task whose deletion fails is not run again, and is deleted later', async (t) => {
  const { kind, start, definitions, holdWrites, writes, counts, cluster } = await open(t, { kind: new HeldKind() });
  const runner = start();
  await until('it runs', () => runner.isRunning);
  holdWrites();
  kind.last?.end();
  for (let n = 0; n < 3; n++) {
    const held = await until('it is being deleted', () => writes[n]);
    t.false(runner.isRunning);
    held.reject(away());
  }
  const held = await until('it is being deleted', () => writes[3]);
  held.resolve();
  await runner.over;
  t.is(definitions.get(NAME), undefined);
  t.is(kind.runs.length, 1);
  t.is(counts.failed, 3);
  t.is(cluster.config.entries().size, 0);
});

test('a complete task that is stopped before it could be deleted leaves word of that with its claim', async (t) => {
  const { kind, start, holdWrites, writes, lease } = await open(t, { kind: new HeldKind() });
  const runner = start();
  await until('it runs', () => runner.isRunning);
  holdWrites();
  kind.last?.end();
  const deletion = await until('it is being deleted', () => writes[0]);
  void runner.stop(HANDED_OVER);
  deletion.reject(away());
  const save = await until('its progress is being saved', () => writes[1]);
  save.reject(away());
  await runner.over;
  t.like(lease.kept.at(-1), { uid: 'u', over: true });
  t.like(runner.unsaved, { over: true });
});

test('a new task that fails ends with its failure, and one whose application closes with that', async (t) => {
  const failing = await open(t, { kind: new HeldKind(), isNew: true });
  const one = failing.start();
  t.true(one.isNew);
  await until('it runs', () => one.isRunning);
  failing.kind.last?.end(new Error('it fails'));
  await t.throwsAsync(one.started, { message: 'it fails' });
  await one.over;
  t.is(failing.kind.runs.length, 1);
  t.is(failing.counts.failed, 0);
  const closing = await open(t, { kind: new HeldKind(), isNew: true });
  const two = closing.start();
  await until('it runs', () => two.isRunning);
  closing.registry.vhost('default').application('app').close('changed');
  await t.throwsAsync(two.started, { message: 'the task is over' });
  await two.over;
  t.is(closing.kind.runs.length, 1);
});

test('a run that chooses its end is handed over then', async (t) => {
  const { kind, start, definitions } = await open(t, { kind: new HeldKind() });
  let leave = (): void => {};
  kind.onRun = (task) => task.handsOver((leaves) => (leave = leaves));
  const runner = start();
  await until('it runs', () => runner.isRunning);
  const cancelled = new AbortController();
  runner.handOver(HANDED_OVER, cancelled.signal);
  cancelled.abort();
  leave();
  t.false(kind.last?.task.signal.aborted, 'the hand-over was cancelled');
  runner.handOver(HANDED_OVER, new AbortController().signal);
  t.false(kind.last?.task.signal.aborted);
  leave();
  t.is(kind.last?.task.signal.reason, HANDED_OVER);
  await runner.over;
  t.not(definitions.get(NAME), undefined);
});

test('a run that is to be handed over and ends before its moment is not tried again here', async (t) => {
  for (const error of [new Error('it fails'), undefined]) {
    const { kind, start, definitions, counts } = await open(t, { kind: new HeldKind() });
    kind.onRun = (task) => task.handsOver(() => {});
    const runner = start();
    await until('it runs', () => runner.isRunning);
    runner.handOver(HANDED_OVER, new AbortController().signal);
    kind.last?.end(error);
    await runner.over;
    t.deepEqual(counts, { started: 1, failed: 0, takenOver: 0 });
    t.is(kind.runs.length, 1);
    t.is(definitions.get(NAME)?.progress?.over, error === undefined ? true : undefined);
  }
});

test('a stream that is back while progress is being saved is followed on, whether or not that succeeds', async (t) => {
  for (const isSaved of [true, false]) {
    const { kind, start, registry, holdWrites, writes, lease } = await open(t, { kind: new HeldStreamKind() });
    const output = publishLive(registry);
    const runner = start();
    await until('it runs', () => runner.isRunning);
    kind.last?.task.keep('so far');
    holdWrites();
    output.input.close('gone');
    const save = await until('progress is being saved', () => writes[0]);
    t.false(runner.isRunning);
    publishLive(registry);
    runner.look();
    if (isSaved) save.resolve();
    else save.reject(away());
    await until('it runs again', () => runner.isRunning, 500);
    t.is(kind.last?.task.progress, 'so far');
    t.false(lease.isReleased);
    kind.last?.task.keep('more');
    void runner.stop(REMOVED);
    const again = await until('progress is saved at the end', () => writes[1]);
    again.resolve();
    await runner.over;
  }
});

test('a task whose stream has gone and whose progress cannot be saved ends at once when it is stopped', async (t) => {
  for (const isPausing of [false, true]) {
    const { kind, start, registry, holdWrites, writes, lease } = await open(t, { kind: new HeldStreamKind() });
    const output = publishLive(registry);
    const runner = start();
    await until('it runs', () => runner.isRunning);
    holdWrites();
    output.input.close('gone');
    const save = await until('progress is being saved', () => writes[0]);
    if (isPausing) {
      save.reject(away());
      await setImmediate();
    }
    void runner.stop(HANDED_OVER);
    if (!isPausing) save.reject(away());
    const again = await until('progress is saved at the end', () => writes[1], 500);
    again.reject(away());
    await runner.over;
    t.true(lease.isReleased);
    t.is(kind.runs.length, 1);
    t.not(runner.unsaved, undefined);
  }
});

test('a pause after failures ends when the stream goes, and the task is released', async (t) => {
  const { kind, start, registry, definitions, lease } = await open(t, { kind: new HeldStreamKind() });
  const output = publishLive(registry);
  const runner = start();
  const runs = await failOften(kind);
  output.input.close('gone');
  await until('it is released', () => lease.isReleased, 500);
  await runner.over;
  t.is(kind.runs.length, runs);
  t.is(definitions.get(NAME)?.progress?.fence, lease.fence, 'signed by its last owner');
});
