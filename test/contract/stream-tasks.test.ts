import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { taskKey } from '../../src/tasks/definition.ts';
import { TaskExistsError } from '../../src/tasks/tasks.ts';
import { openNode } from '../support/cluster/cluster.ts';
import {
  countingName,
  CountingKind,
  publish,
  readTotal,
  write,
  type Count,
  type CountingSpec,
} from '../support/tasks/counting-task.ts';
import { FakeKind, openTasks } from '../support/tasks/fake-task.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { seeded } from '../unit/codecs/vectors.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const KEPT = { persistent: true, withinMs: PATIENCE_MS };
const LIVE: CountingSpec = { stream: 'live' };
const spec = (value: CountingSpec) => ({ ...value });
const ONE = countingName('one');

/** Nodes of one cluster in this process, and everything that their tasks count. */
async function open(t: ExecutionContext, redis: RedisServer, ids: readonly string[]) {
  const counts: Count[] = [];
  const nodes: Node[] = [];
  for (const id of ids) {
    const kind = new CountingKind((count) => counts.push(count));
    const node = openTasks(await openNode(t, id, { url: redis.url }), kind);
    t.teardown(() => node.tasks.close());
    nodes.push(node);
  }
  await until('all know all', () =>
    nodes.every(
      ({ cluster }) => cluster.nodes().filter(({ state, full }) => state === 'ready' && !full).length >= ids.length,
    ),
  );
  return { nodes: nodes as unknown as [Node, Node, Node], counts };
}

type Node = ReturnType<typeof openTasks<CountingKind>>;

const runs = (id: string, node: Node) => until(`${id} runs`, () => node.kind.running.get(id));
const definition = (node: Node, name = ONE) => node.tasks.definitions.get(name);
const savedTotal = (node: Node, name = ONE) => readTotal(definition(node, name)?.progress?.value).total;
/** Nobody has the task, and its definition has what it has counted. */
const waits = (total: number, ...nodes: Node[]) =>
  until(`the task waits with ${total}`, async () => {
    for (const node of nodes) {
      if (savedTotal(node) !== total || (await node.cluster.ownerOf(taskKey(ONE))) !== undefined) return false;
    }
    return true;
  });

/** Packets that were counted more than once, and those that an earlier owner counted after a later one. */
function faults(counts: readonly Count[]): string[] {
  const seen = new Set<string>();
  const fences = new Map<string, number>();
  return counts.flatMap(({ task, fence, number }) => {
    const isTwice = seen.has(`${task} ${number}`);
    const isLate = fence < (fences.get(task) ?? 0);
    seen.add(`${task} ${number}`);
    fences.set(task, fence);
    return isTwice || isLate ? [`${task}: packet ${number} by ${fence}`] : [];
  });
}

test('the caller that deletes a task receives its last state, on whichever node that was', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes } = await open(t, redis, ['a', 'b']);
  const [a, b] = nodes;
  for (const [count, asked] of [a, b].entries()) {
    await b.everywhere.create(ONE, spec(LIVE), KEPT);
    const output = await publish(a, 'live');
    await runs('one', a);
    write(output, count + 1);
    t.deepEqual(await asked.everywhere.end(ONE), { report: { total: count + 1, sequence: 1 } });
    output.input.close('gone');
    t.is(await asked.everywhere.end(ONE), undefined);
  }
  await b.everywhere.create(ONE, spec(LIVE), KEPT);
  t.deepEqual(await a.everywhere.end(ONE), { report: undefined }, 'it has not run');
});

test('a task waits for its stream, runs where that appears, and hands on what it has counted', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes, counts } = await open(t, redis, ['a', 'b', 'c']);
  const [a, b, c] = nodes;
  await c.everywhere.create(ONE, spec(LIVE), KEPT);
  await t.throwsAsync(a.everywhere.create(ONE, spec(LIVE), KEPT), { instanceOf: TaskExistsError });
  const application = a.registry.vhost('default').application('app');
  t.like((await a.everywhere.list('counting', application))[0], { name: ONE, state: 'waiting', report: undefined });
  let total = 0;
  for (const [at, node] of [b, b, a, c, b].entries()) {
    const output = await publish(node, 'live');
    await runs('one', node);
    t.deepEqual(
      nodes.filter(({ kind }) => kind.running.has('one')),
      [node],
    );
    t.like(node.kind.begun.at(-1), { total, sequence: at + 1 });
    write(output, 37);
    total += 37;
    const [row] = await a.everywhere.list('counting', application);
    t.like(row, { name: ONE, state: 'running', report: { total, sequence: at + 1 } });
    output.input.close('the publisher left');
    await waits(total, ...nodes);
  }
  t.is(counts.length, total);
  t.deepEqual(faults(counts), []);
  t.true(await a.everywhere.remove(ONE));
  t.false(await b.everywhere.remove(ONE));
});

test('of many nodes that create a task of one id at once one does', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes } = await open(t, redis, ['a', 'b', 'c']);
  const outcomes = await Promise.allSettled(
    Array.from({ length: 9 }, (_, n) => (nodes[n % 3] as Node).everywhere.create(ONE, spec(LIVE), KEPT)),
  );
  t.is(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const outcome of outcomes) if (outcome.status === 'rejected') t.true(outcome.reason instanceof TaskExistsError);
});

test('a stream that ends and returns within one turn, and one that another node takes over, are counted on', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes, counts } = await open(t, redis, ['a', 'b']);
  const [a, b] = nodes;
  await a.everywhere.create(ONE, spec(LIVE), KEPT);
  let output = await publish(a, 'live');
  await runs('one', a);
  write(output, 5);
  const application = a.registry.vhost('default').application('app');
  const options = { replace: true, maxConnections: 0, silence: 'continue' } as const;
  for (const node of [a, b, a]) {
    const taker = node.registry.vhost('default').application('app');
    const input = await node.names.publish(taker, 'live', { type: 'Rtmp', kind: 'rtmp' }, options);
    input.setTracks(output.tracks);
    const [before, fence] = [output, (node === b ? a : b).kind.begun.length];
    t.true(before.closed);
    output = taker.addOutput(input, 'live');
    output.setTracks(before.tracks);
    taker.announce(output);
    await until('it runs beside the new one', () => node.kind.running.get('one')?.output === output);
    write(output, 5);
    t.is((node === b ? a : b).kind.begun.length, fence, 'nowhere else');
  }
  t.false(application.closed);
  output.input.close('gone');
  await waits(20, ...nodes);
  t.is(counts.length, 20);
  t.deepEqual(faults(counts), []);
});

test('a task that is over is deleted, and one of the same id starts from nothing', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes } = await open(t, redis, ['a', 'b']);
  const [a, b] = nodes;
  await b.everywhere.create(ONE, spec({ ...LIVE, until: 10 }), KEPT);
  const output = await publish(a, 'live');
  await runs('one', a);
  write(output, 25);
  await until('its definition is gone', () => nodes.every((node) => definition(node) === undefined));
  await until('nobody has it', async () => (await b.cluster.ownerOf(taskKey(ONE))) === undefined);
  await b.everywhere.create(ONE, spec(LIVE), KEPT);
  await runs('one', a);
  t.like(a.kind.begun.at(-1), { total: 0, sequence: 1 });
  write(output, 3);
  t.true(await b.everywhere.remove(ONE));
  t.is(a.kind.running.size, 0);
  // deleted while it waits
  output.input.close('gone');
  await b.everywhere.create(ONE, spec(LIVE), KEPT);
  t.true(await a.everywhere.remove(ONE));
  const again = await publish(b, 'live');
  await b.everywhere.create(countingName('two'), spec(LIVE), KEPT);
  await runs('two', b);
  t.false(b.kind.running.has('one'));
  again.input.close('gone');
});

test('a drained node keeps the tasks of its streams, and the node where they return has the total', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes, counts } = await open(t, redis, ['a', 'b']);
  const [a, b] = nodes;
  await b.everywhere.create(ONE, spec(LIVE), KEPT);
  const output = await publish(a, 'live');
  await runs('one', a);
  await b.cluster.drain('a');
  await until('it drains', () => a.cluster.draining && b.cluster.nodes().some(({ state }) => state === 'draining'));
  write(output, 11);
  t.is(a.kind.running.get('one')?.signal.aborted, false);
  output.input.close('the node asked its publisher to leave');
  const next = await publish(b, 'live');
  await runs('one', b);
  t.like(b.kind.begun.at(-1), { total: 11, sequence: 2 });
  write(next, 9);
  // a node that stops while its stream is live writes down what its tasks have, too
  await b.tasks.close();
  await until('it is written down', () => savedTotal(a) === 20);
  t.is(counts.length, 20);
  t.deepEqual(faults(counts), []);
});

test('the progress of a waiting task outlives the claims in Redis, and Redis itself', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes } = await open(t, redis, ['a', 'b']);
  const [a, b] = nodes;
  await a.everywhere.create(ONE, spec(LIVE), KEPT);
  const output = await publish(a, 'live');
  await runs('one', a);
  write(output, 42);
  output.input.close('gone for hours');
  await waits(42, a, b);
  await redis.kill();
  await until('Redis is away', () => nodes.every(({ cluster }) => cluster.state === 'degraded'));
  await redis.run();
  await until('Redis is back, empty', () => nodes.every(({ cluster }) => cluster.state === 'connected'));
  const again = await publish(b, 'live');
  await runs('one', b);
  t.like(b.kind.begun.at(-1), { total: 42, sequence: 2 });
  again.input.close('gone');
});

test('a stream goes and returns while Redis is away: nothing is lost, and nothing counted twice', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes, counts } = await open(t, redis, ['a', 'b']);
  const [a, b] = nodes;
  await a.everywhere.create(ONE, spec(LIVE), KEPT);
  const output = await publish(a, 'live');
  await runs('one', a);
  write(output, 13);
  await redis.kill();
  await until('Redis is away', () => nodes.every(({ cluster }) => cluster.state === 'degraded'));
  write(output, 13);
  output.input.close('gone');
  const again = await publish(a, 'live');
  const task = await until('it runs beside the new one', () => {
    const running = a.kind.running.get('one');
    return running?.output === again ? running : undefined;
  });
  await until('it may count', () => task.valid);
  write(again, 13);
  again.input.close('gone');
  await redis.run();
  await until('Redis is back', () => nodes.every(({ cluster }) => cluster.state === 'connected'));
  await waits(39, a, b);
  t.is(counts.length, 39);
  t.deepEqual(faults(counts), []);
});

test('a node that was cut off from Redis alone goes on with what it has counted', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const counts: Count[] = [];
  const url = `redis://127.0.0.1:${proxy.port}`;
  const a = openTasks(await openNode(t, 'a', { url }), new CountingKind((count) => counts.push(count)));
  t.teardown(() => a.tasks.close());
  // another node, which does not know what the task is
  const b = openTasks(await openNode(t, 'b', { url: redis.url }), new FakeKind());
  t.teardown(() => b.tasks.close());
  await until('they know each other', () => [a, b].every(({ cluster }) => cluster.nodes().length === 2));
  await a.everywhere.create(ONE, spec(LIVE), KEPT);
  const output = await publish(a, 'live');
  const task = await runs('one', a);
  write(output, 10);
  proxy.cut();
  await until('it is cut off', () => a.cluster.state === 'degraded');
  await until('it may not count any more', () => {
    write(output, 1);
    return !task.valid;
  });
  const counted = counts.length;
  t.true(counted > 10);
  await until('it has stopped', () => a.kind.running.size === 0);
  proxy.heal();
  await runs('one', a);
  t.like(a.kind.begun.at(-1), { total: counted, sequence: 2 });
  write(output, 5);
  output.input.close('gone');
  await waits(counted + 5, a);
  t.deepEqual(faults(counts), []);
});

/** What Redis has of the task's progress beside its claim. */
function keptIn(t: ExecutionContext, redis: RedisServer) {
  const client = new Redis(redis.url);
  t.teardown(() => client.disconnect());
  const key = `{kiln:test}:kept:${taskKey(ONE)}`;
  const total = async () => readTotal(JSON.parse((await client.get(key)) ?? '{}').value).total;
  return {
    has: (count: number) => until(`Redis has ${count}`, async () => (await total()) === count),
    forget: () => client.del(key),
  };
}

/** A node in a process of its own, which can be killed. */
async function startChild(t: ExecutionContext, redis: RedisServer, id: string) {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, '../support/tasks/counting-child.ts'), redis.url, id],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  t.teardown(() => child.kill('SIGKILL'));
  const said = new Set<string>();
  createInterface({ input: child.stdout }).on('line', (line) => said.add(line));
  const says = (line: string) => until(`${id} says ${line}`, () => said.has(line));
  await says('ready');
  const signal = (name: NodeJS.Signals): boolean => child.kill(name);
  return { said, says, signal, tell: (line: string) => child.stdin.write(`${line}\n`) };
}

test('an owner that is killed loses no more than it counted since it kept last; what it kept lasts without an owner', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes } = await open(t, redis, ['a', 'b']);
  const [a, b] = nodes;
  const store = keptIn(t, redis);
  await a.everywhere.create(ONE, spec(LIVE), KEPT);
  const first = await startChild(t, redis, 'x');
  first.tell('publish live');
  await first.says('running one');
  first.tell('write 57');
  await first.says('counted 57');
  await store.has(50);
  first.signal('SIGKILL');
  const output = await publish(a, 'live');
  await runs('one', a);
  t.like(a.kind.begun.at(-1), { total: 50, sequence: 2 });
  write(output, 10);
  output.input.close('gone');
  await waits(60, a, b);
  const second = await startChild(t, redis, 'y');
  second.tell('publish live');
  await second.says('running one');
  second.tell('write 33');
  await second.says('counted 93');
  await store.has(90);
  second.signal('SIGKILL');
  // nobody publishes, for longer than Redis keeps anything of the claim
  await waits(90, a, b);
  await store.forget();
  const again = await publish(b, 'live');
  await runs('one', b);
  t.like(b.kind.begun.at(-1), { total: 90, sequence: 4 });
  again.input.close('gone');
});

test('an owner whose process stood still counts nothing any more', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes } = await open(t, redis, ['a', 'b']);
  const [a, b] = nodes;
  await b.everywhere.create(ONE, spec(LIVE), KEPT);
  const child = await startChild(t, redis, 'x');
  child.tell('publish live');
  await child.says('running one');
  child.tell('write 20');
  await keptIn(t, redis).has(20);
  child.signal('SIGSTOP');
  const output = await publish(a, 'live');
  await runs('one', a);
  t.like(a.kind.begun.at(-1), { total: 20, sequence: 2 });
  write(output, 10);
  // it is the first thing that it does
  child.tell('write 7');
  child.signal('SIGCONT');
  await child.says('wrote 7');
  t.false(child.said.has('counted 21'));
  output.input.close('gone');
  await waits(30, a, b);
});

test('the late progress of an earlier owner does not replace that of its successor', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes } = await open(t, redis, ['a', 'b']);
  const [a, b] = nodes;
  await a.everywhere.create(ONE, spec(LIVE), KEPT);
  const output = await publish(a, 'live');
  const old = await runs('one', a);
  write(output, 20);
  output.input.close('gone');
  await waits(20, a, b);
  const next = await publish(b, 'live');
  const task = await runs('one', b);
  write(next, 10);
  t.true(task.fence > old.fence);
  // as a call that was under way for long
  old.keep({ total: 1, sequence: 1 });
  const saved = definition(a)?.progress;
  await a.tasks.definitions.save(ONE, {
    uid: saved?.uid ?? '',
    fence: old.fence,
    step: 99,
    value: { total: 1, sequence: 1 },
  });
  next.input.close('gone');
  await waits(30, a, b);
});

test('publishers leave, return elsewhere and take over, nodes are drained: every packet is counted once', async (t) => {
  const redis = await RedisServer.start(t);
  const { nodes, counts } = await open(t, redis, ['a', 'b', 'c']);
  const ids = ['one', 'two', 'three'];
  for (const id of ids) await nodes[0].everywhere.create(countingName(id), spec(LIVE), KEPT);
  const random = seeded(13);
  const pick = (): Node => nodes[Math.floor(random() * nodes.length)] as Node;
  let draining: string | undefined;
  let written = 0;
  for (let round = 0; round < 25; round++) {
    const node = pick();
    const output = await publish(node, 'live');
    for (const id of ids) await runs(id, node);
    for (let part = 0; part < 3; part++) {
      const count = Math.floor(random() * 20);
      write(output, count);
      written += count;
      if (part === 1 && random() < 0.3) {
        if (draining === undefined) await node.cluster.drain((draining = pick().cluster.self.id));
        else await node.cluster.undrain(draining).then(() => (draining = undefined));
      }
    }
    output.input.close('the publisher left');
  }
  for (const id of ids) {
    const name = countingName(id);
    await until(`${id} is written down`, () => nodes.every((node) => savedTotal(node, name) === written));
  }
  t.is(counts.length, written * ids.length);
  t.deepEqual(faults(counts), []);
});
