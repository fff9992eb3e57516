import { mkdtempSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Json } from '#cluster';
import { ChannelFiles } from '../../../../src/channels/files/channel-files.ts';
import type { ScheduleSpec } from '../../../../src/channels/scheduled/spec.ts';
import type { PlacedKind, Task } from '../../../../src/tasks/kind.ts';
import { openTasks } from '../../../support/tasks/fake-task.ts';
import { MemoryCluster } from '../../../support/memory-cluster/cluster.ts';
import { until } from '../../../support/time/until.ts';
import { MULTIPLEX, SCHEDULE } from '../../../unit/channels/files/samples.ts';

const TV1 = { kind: 'scheduled', vhost: 'default', app: 'app', id: 'tv1' };

/** Runs until it is stopped, and keeps what it is told. */
class ChannelKind implements PlacedKind {
  readonly name: string;
  readonly running = new Map<string, Task>();
  /** Specs that runs were changed to. */
  readonly changes: ScheduleSpec[] = [];

  constructor(name: string) {
    this.name = name;
  }

  writeFailure(): Json | undefined {
    return undefined;
  }

  readFailure(): Error {
    return new Error('it failed elsewhere');
  }

  async run(task: Task): Promise<void> {
    const { id } = task.name;
    this.running.set(id, task);
    task.started();
    task.show(() => ({ of: id }));
    task.changed((spec) => this.changes.push(spec as ScheduleSpec));
    await new Promise((resolve) => task.signal.addEventListener('abort', resolve, { once: true }));
    this.running.delete(id);
  }
}

interface Node {
  readonly id: string;
  readonly schedules: string;
  readonly multiplexes: string;
  readonly scheduled: ChannelKind;
  readonly multiplex: ChannelKind;
  readonly files: ChannelFiles;
  readonly tasks: ReturnType<typeof openTasks>;
  /** Warnings, each with its reason. */
  readonly warnings: string[];
}

/** Nodes with folders of their own below one of the test. */
async function open(
  t: ExecutionContext,
  ids: readonly string[],
): Promise<{ cluster: MemoryCluster; nodes: Node[]; root: string }> {
  const root = mkdtempSync(join(tmpdir(), 'kiln-channels-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  const cluster = MemoryCluster.create(t, 1);
  const nodes = await Promise.all(ids.map((id) => openOne(t, cluster, root, id)));
  await until('all see all', () => nodes.every(({ tasks }) => tasks.cluster.nodes().length === ids.length));
  return { cluster, nodes, root };
}

async function openOne(t: ExecutionContext, cluster: MemoryCluster, root: string, id: string): Promise<Node> {
  const [schedules, multiplexes] = [join(root, id, 'sch'), join(root, id, 'mux')];
  await mkdir(schedules, { recursive: true });
  const providers = { schedule: { scheduleFilesDir: 'sch' }, multiplex: { muxFilesDir: multiplexes } };
  const [scheduled, multiplex] = [new ChannelKind('scheduled'), new ChannelKind('multiplex')];
  const tasks = openTasks(await cluster.open(id), scheduled, { providers: providers as never });
  tasks.tasks.add(multiplex);
  const warnings: string[] = [];
  const write = (line: string): void => {
    const { level, msg, reason } = JSON.parse(line) as { level: number; msg: string; reason?: string };
    if (level >= 40) warnings.push(reason === undefined ? msg : `${msg}: ${reason}`);
  };
  const files = new ChannelFiles({ ...tasks, folder: join(root, id), log: pino({}, { write }) });
  files.start();
  t.teardown(async () => {
    await tasks.tasks.close();
    files.close();
  });
  return { id, schedules, multiplexes, scheduled, multiplex, files, tasks, warnings };
}

function scheduleOf(name: string, program = '1'): string {
  return SCHEDULE.replace('tv1', name).replace('<Program name="1"', `<Program name="${program}"`);
}

/** As an editor does it. */
async function save(path: string, text: string): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.swp`);
  await writeFile(temporary, text);
  await rename(temporary, path);
}

test('a channel begins with its file, hears of changes and ends with the file', async (t) => {
  const { nodes } = await open(t, ['a']);
  const [{ schedules, multiplexes, scheduled, multiplex, warnings }] = nodes as [Node];
  await until('the missing folder is told', () => warnings.length === 1);
  await save(join(schedules, 'other.sch'), scheduleOf('tv1'));
  await save(join(schedules, 'notes.txt'), 'no channel');
  await until('it runs', () => scheduled.running.has('tv1'));
  const { signal } = scheduled.running.get('tv1')!;
  await save(join(schedules, 'other.sch'), scheduleOf('tv1', 'another'));
  await until('the run hears of it', () => scheduled.changes.length === 1);
  t.is(scheduled.changes[0]!.programs[0]!.name, 'another');
  t.false(signal.aborted);
  await mkdir(multiplexes);
  await save(join(multiplexes, 'stream.mux'), MULTIPLEX);
  const first = await until('the other kind runs', () => multiplex.running.get('stream'));
  await save(join(multiplexes, 'stream.mux'), MULTIPLEX.replaceAll('tv2_video', 'low'));
  const second = await until('it is created anew', () => {
    const task = multiplex.running.get('stream');
    return task !== first && task;
  });
  t.like(first.signal.reason, { reason: 'removed' });
  t.is(
    (second.spec as { sourceStreams: { trackMap: { newTrackName: string }[] }[] }).sourceStreams[1]!.trackMap[0]!
      .newTrackName,
    'low',
  );
  await rm(join(schedules, 'other.sch'));
  await until('it has ended', () => signal.aborted);
  t.like(signal.reason, { reason: 'removed' });
  t.is(multiplex.running.size, 1);
  t.is(warnings.length, 1, warnings.join('\n'));
});

test('a change of the stream of a schedule creates the channel anew', async (t) => {
  const { nodes } = await open(t, ['a']);
  const [{ schedules, scheduled }] = nodes as [Node];
  await save(join(schedules, 'tv1.sch'), SCHEDULE);
  const first = await until('it runs', () => scheduled.running.get('tv1'));
  await save(join(schedules, 'tv1.sch'), SCHEDULE.replace('<VideoTrack>true', '<VideoTrack>false'));
  const second = await until('it runs anew', () => {
    const task = scheduled.running.get('tv1');
    return task !== first && task;
  });
  t.false((second.spec as unknown as ScheduleSpec).stream.videoTrack);
  t.deepEqual(scheduled.changes, []);
});

test('a file that is half written leaves the channel as it was, and is reported once', async (t) => {
  const { nodes } = await open(t, ['a']);
  const [{ schedules, multiplexes, scheduled, warnings }] = nodes as [Node];
  await mkdir(multiplexes);
  const path = join(schedules, 'tv1.sch');
  await save(path, SCHEDULE);
  const { signal } = await until('it runs', () => scheduled.running.get('tv1'));
  await until('nothing is wrong', () => warnings.splice(0).length === 0);
  await save(path, SCHEDULE.slice(0, 900));
  await until('it is told', () => warnings.length > 0);
  await save(path, scheduleOf('tv1', 'whole'));
  await until('the whole file counts', () => scheduled.changes.length > 0);
  t.deepEqual(
    scheduled.changes.map(({ programs }) => programs[0]!.name),
    ['whole'],
  );
  t.false(signal.aborted);
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /previous content remains in use: .*tv1\.sch:\d+: /);
});

test('the first of several files of a channel counts, and a stored channel comes before files', async (t) => {
  const { nodes } = await open(t, ['a']);
  const [{ schedules, multiplexes, scheduled, tasks, warnings }] = nodes as [Node];
  await mkdir(multiplexes);
  await tasks.everywhere.define({ ...TV1, id: 'api' }, { from: 'the API' }, { persistent: true });
  await save(join(schedules, 'api.sch'), scheduleOf('api'));
  await save(join(schedules, 'b.sch'), scheduleOf('tv1', 'of b'));
  await save(join(schedules, 'a.sch'), scheduleOf('tv1', 'of a'));
  await symlink('/dev/zero', join(schedules, 'device.sch'));
  await save(join(schedules, 'big.sch'), ' '.repeat(2 ** 20 + 1));
  const specOf = (id: string) => scheduled.running.get(id)?.spec as ScheduleSpec | undefined;
  await until('they run', () => scheduled.running.size === 2);
  const latest = () => scheduled.changes.at(-1) ?? specOf('tv1');
  await until('the first counts', () => latest()?.programs[0]!.name === 'of a');
  t.deepEqual(scheduled.running.get('api')!.spec, { from: 'the API' });
  const wanted = [
    /b\.sch|a\.sch defines the channel tv1/,
    /api was created through the management API/,
    /regular file/,
    /larger/,
  ];
  await until('all is told', () => wanted.every((pattern) => warnings.some((text) => pattern.test(text))));
  await rm(join(schedules, 'a.sch'));
  await until('the second counts', () => latest()?.programs[0]!.name === 'of b');
  t.is(
    new Set(warnings.filter((text) => !text.includes('ENOENT'))).size,
    warnings.filter((text) => !text.includes('ENOENT')).length,
  );
});

test('one of the nodes that have a file runs its channel, and any node can find, change and remove it', async (t) => {
  const { cluster, nodes, root } = await open(t, ['a', 'b', 'c']);
  const [a, b, c] = nodes as [Node, Node, Node];
  for (const { schedules } of [a, b]) await save(join(schedules, 'tv1.sch'), SCHEDULE);
  const runner = await until('one runs it', () => nodes.find(({ scheduled }) => scheduled.running.has('tv1')));
  t.not(runner, c);
  const application = c.tasks.registry.vhost('default').applications.get('app')!;
  await until('it is listed', async () => (await c.files.names('scheduled', application)).length === 1);
  t.deepEqual(await c.files.names('scheduled', application), ['tv1']);
  t.deepEqual(await c.files.names('multiplex', application), []);
  const found = await until('its owner tells of it', async () => {
    const row = await c.files.find(TV1);
    return row?.isRunning === true && row;
  });
  t.deepEqual(found.report, { of: 'tv1' });
  const spec = found.spec as unknown as ScheduleSpec;
  t.is(spec.programs.length, 2);
  t.is(await c.files.find({ ...TV1, id: 'none' }), undefined);
  t.false(await c.files.remove({ ...TV1, id: 'none' }, false));
  t.false(await c.files.rewrite({ ...TV1, id: 'none' }, spec));
  await until('both have found their files', () =>
    [a, b].every(({ tasks }) => tasks.tasks.definitions.offered.get(TV1) !== undefined),
  );

  t.true(await c.files.rewrite(TV1, { ...spec, programs: spec.programs.slice(1) }));
  await until('its run hears of it', () => runner.scheduled.changes.length > 0);
  t.deepEqual(
    runner.scheduled.changes.map(({ programs }) => programs.length),
    [1],
  );
  const texts = await Promise.all([a, b].map(({ schedules }) => readFile(join(schedules, 'tv1.sch'), 'utf8')));
  t.is(texts[0], texts[1]);
  t.deepEqual(await readdir(a.schedules), ['tv1.sch']);

  cluster.kill(runner.id);
  const other = runner === a ? b : a;
  await until('the other runs it', () => other.scheduled.running.has('tv1'));
  t.false(c.scheduled.running.has('tv1'));
  await until('the dead node is known to be', () =>
    c.tasks.cluster.nodes().every(({ id, state }) => id !== runner.id || state === 'lost'),
  );
  t.true(await c.files.remove(TV1, false));
  t.false(other.scheduled.running.has('tv1'));
  t.deepEqual(await readdir(other.schedules), []);
  t.is(await c.files.find(TV1), undefined);

  t.deepEqual(await readdir(runner.schedules), ['tv1.sch'], 'the node that is away has its file');
  await save(join(runner.schedules, 'tv2.sch'), scheduleOf('tv2'));
  const back = await openOne(t, cluster, root, runner.id);
  await until('its other channel runs', () => back.scheduled.running.has('tv2'));
  t.deepEqual(await readdir(back.schedules), ['tv2.sch']);
  t.false(back.scheduled.running.has('tv1'));
  await save(join(back.schedules, 'tv1.sch'), SCHEDULE);
  await until('a new file is another channel', () => back.scheduled.running.has('tv1'));
  const again = await openOne(t, cluster, root, runner.id);
  await until('also after a restart', () => again.scheduled.running.has('tv1'));
  for (const id of ['tv1', 'tv2']) t.true(await c.files.remove({ ...TV1, id }, false));
  t.deepEqual(await readdir(back.schedules), []);
});

test('a channel is not said to be missing as long as a node does not answer, and its deletion reaches that later', async (t) => {
  const { cluster, nodes } = await open(t, ['a', 'b']);
  const [a, b] = nodes as [Node, Node];
  await save(join(a.schedules, 'tv1.sch'), SCHEDULE);
  await until('it runs', () => a.scheduled.running.has('tv1'));
  cluster.split(['a'], ['b']);
  const error = await t.throwsAsync(b.files.remove(TV1, false));
  t.true(['ownerUnreachable', 'ownerSilent'].includes((error as unknown as { code: string }).code), error.message);
  await save(join(b.schedules, 'tv1.sch'), SCHEDULE);
  await until('it is known', async () => (await b.files.find(TV1)) !== undefined);
  t.true(await b.files.remove(TV1, false));
  await until('the other node has heard', async () => (await readdir(a.schedules)).length === 0);
  await until('it has ended', () => a.scheduled.running.size === 0);
});

test('a file that cannot be deleted is reported, and its channel goes on', async (t) => {
  const { nodes } = await open(t, ['a']);
  const [{ schedules, scheduled, files }] = nodes as [Node];
  await save(join(schedules, 'tv1.sch'), SCHEDULE);
  await until('it runs', () => scheduled.running.has('tv1'));
  await rm(join(schedules, 'tv1.sch'));
  // which cannot be unlinked
  await mkdir(join(schedules, 'tv1.sch'));
  const error = await t.throwsAsync(files.remove(TV1, false));
  t.is((error as unknown as { code: string }).code, 'storageFailed');
  t.true(scheduled.running.has('tv1'));
});
