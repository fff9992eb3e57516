import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { ConfigCopy } from '../../cluster/config-copy.ts';
import { ConflictError, UnavailableError, type Change, type Cluster, type ConfigStore, type Json } from '#cluster';
import { CertificateStore } from '../../src/tls/certificates.ts';
import { Registry } from '../../src/core/registry.ts';
import type { KilnError } from '../../src/errors.ts';
import { ConfigWriter } from '../../src/management/config-writer.ts';
import { DynamicConfig } from '../../src/management/dynamic-config.ts';
import { openNode, TIMING } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

const values = ({ config }: Cluster) =>
  Object.fromEntries([...config.entries()].map(([key, { value }]) => [key, value]));
const put = (key: string, value: Json): Change => ({ key, value, seen: 0 });
const same = (...nodes: Cluster[]) =>
  until(
    'all have the same',
    () => new Set(nodes.map((node) => JSON.stringify([...node.config.entries()].sort()))).size === 1,
  );

function folder(t: ExecutionContext): string {
  const path = mkdtempSync(join(tmpdir(), 'kiln-copies-'));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A store whose writes `around` makes. */
function storeWith(store: ConfigStore, around: (write: () => Promise<void>) => Promise<void>): ConfigStore {
  return {
    entries: () => store.entries(),
    sync: (seen) => store.sync(seen),
    listen: (listener) => store.listen(listener),
    get stale() {
      return store.stale;
    },
    get position() {
      return store.position;
    },
    write: (changes, expected) => around(() => store.write(changes, expected)),
  };
}

/** What a node's management API changes, with a registry of its own. */
function dynamicOf(cluster: Cluster, config: ConfigStore): DynamicConfig {
  const log = pino({ level: 'silent' });
  const certificates = new CertificateStore({ folder: '/nowhere', log });
  const withLock: Cluster['withLock'] = (key, fn) => cluster.withLock(key, fn);
  return new DynamicConfig({ registry: new Registry(), cluster: { config, withLock }, certificates, log });
}

async function change(node: Cluster, key: string, value?: Json): Promise<void> {
  await node.config.sync();
  await node.config.write([
    { key, seen: node.config.entries().get(key)?.revision ?? 0, ...(value !== undefined && { value }) },
  ]);
}

test('a node that was cut off catches up by itself, also when removals are not remembered any more', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await openNode(t, 'a', { url: redis.url });
  const b = await openNode(t, 'b', { url: `redis://127.0.0.1:${proxy.port}` });
  await a.config.write([put('stays', 1), put('goes', 1), put('changes', 1)]);
  await until('b has it', () => b.config.entries().size === 3);
  for (const removals of [3, 2100]) {
    proxy.cut();
    await until('degraded', () => b.state === 'degraded');
    const heard: string[] = [];
    const undo = b.config.listen((keys) => void heard.push(...keys));
    const keys = Array.from({ length: removals }, (_, n) => `many/${n}`);
    await a.config.write([put('many', 1), ...keys.map((key) => put(key, 1))]);
    await change(a, 'many');
    await change(a, 'goes');
    await change(a, 'changes', removals);
    await change(a, 'comes', removals);
    t.is(b.config.entries().size, 3, 'b knows nothing of it');
    proxy.heal();
    await same(a, b);
    t.deepEqual(values(b), { stays: 1, changes: removals, comes: removals });
    await b.config.sync();
    const own = heard.filter((key) => !key.startsWith('many')).sort();
    t.deepEqual([...new Set(own)], ['changes', 'comes', 'goes']);
    undo();
    await change(a, 'comes');
    await change(a, 'goes', 1);
    await until('as before', () => b.config.entries().has('goes') && !b.config.entries().has('comes'));
  }
});

test('a node that could not ask says so at once, before it has noticed that Redis is away', async (t) => {
  const redis = await RedisServer.start(t);
  const node = await openNode(t, 'a', { url: redis.url }, { timing: { ...TIMING, beat: 5000 } });
  await node.config.sync();
  t.false(node.config.stale);
  redis.pause();
  await node.config.sync();
  t.true(node.config.stale);
  redis.resume();
  await until('it can ask again', async () => {
    await node.config.sync();
    return !node.config.stale;
  });
});

test('every node keeps a copy on its disk; with Redis and all others gone it brings the configuration back', async (t) => {
  const files = folder(t);
  const redis = await RedisServer.start(t);
  const file = (id: string): string => join(files, id, 'config.json');
  const node = (id: string) => openNode(t, id, { url: redis.url }, { file: file(id) });
  const [a, b] = await Promise.all([node('a'), node('b')]);
  await a.config.write([put('v', { name: 'v' }), put('v/app', { list: [] }), put('removed', 1)]);
  await change(a, 'removed');
  await same(a, b);
  await b.close();
  await change(a, 'v/app', { list: [1] });
  const [epoch, revision] = a.config.position.split('.').map(Number);
  await a.close();
  t.like(JSON.parse(readFileSync(file('a'), 'utf8')), { version: 1, epoch, revision });
  await redis.kill();
  // both are there when Redis is: a new one waits for seconds only
  const [b2, a2] = await Promise.all([node('b'), node('a')]);
  await redis.run();
  // Redis tells them in any order
  await until('the highest', () => isDeepStrictEqual(values(b2), { v: { name: 'v' }, 'v/app': { list: [1] } }));
  await t.throwsAsync(b2.config.write([put('v', 1)]), { instanceOf: ConflictError });
  await change(b2, 'v', 2);
  await same(a2, b2);
});

test('the copy of a later life of Redis counts more than a longer one of an earlier', async (t) => {
  const files = folder(t);
  const redis = await RedisServer.start(t);
  const file = (id: string): string => join(files, id);
  const node = (id: string) => openNode(t, id, { url: redis.url }, { file: file(id) });
  const a = await node('a');
  for (let n = 0; n < 6; n++) await change(a, 'x', n);
  await a.close();
  await redis.kill();
  await redis.run();
  const b = await node('b');
  await change(b, 'x', 'later');
  await b.close();
  t.true(JSON.parse(readFileSync(file('b'), 'utf8')).epoch > JSON.parse(readFileSync(file('a'), 'utf8')).epoch);
  await redis.kill();
  const [a2, b2] = await Promise.all([node('a'), node('b')]);
  await redis.run();
  await until('restored', () => values(a2).x === 'later' && values(b2).x === 'later');
  t.is(values(a2).x, 'later');
});

test("the configuration that one node alone had stored becomes the cluster's", async (t) => {
  const file = join(folder(t), 'config.json');
  writeFileSync(file, JSON.stringify({ version: 1, revision: 7, entries: { v: { value: 'old', revision: 5 } } }));
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url }, { file });
  const b = await openNode(t, 'b', { url: redis.url });
  await until('b has it', () => values(b).v === 'old');
  await change(b, 'v', 'new');
  await a.config.sync();
  t.is(values(a).v, 'new');
});

test('a Redis that comes back with an older state gets the newer one', async (t) => {
  const redis = await RedisServer.start(t, { durable: false });
  const a = await openNode(t, 'a', { url: redis.url });
  const b = await openNode(t, 'b', { url: redis.url });
  await change(a, 'x', 1);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const keys = await raw.keys('*');
  const old = await Promise.all(keys.map(async (key) => [key, await raw.dumpBuffer(key)] as const));
  await change(a, 'x', 2);
  await change(a, 'y', 2);
  await same(a, b);
  const back = raw.multi().flushall();
  for (const [key, dump] of old) back.restore(key, 0, dump);
  await back.exec();
  await change(b, 'z', 3);
  await same(a, b);
  await a.config.sync();
  t.deepEqual(values(a), { x: 2, y: 2, z: 3 });
});

for (const [later, title] of [
  [1, 'fewer changes than it'],
  [5, 'more'],
] as const)
  test(`the configuration that a node alone knew and Redis has lost gives way to later writes of other nodes, ${title}`, async (t) => {
    const file = join(folder(t), 'config.json');
    const redis = await RedisServer.start(t);
    const proxy = await TcpProxy.open(t, redis.port);
    const raw = new Redis(redis.url);
    raw.on('error', () => {});
    t.teardown(() => raw.disconnect());
    const faults: string[] = [];
    const onFault = ({ message }: Error): void => void faults.push(message);
    const a = await openNode(t, 'a', { url: `redis://127.0.0.1:${proxy.port}` });
    const node = () => openNode(t, 'n', { url: redis.url }, { file, onFault });
    const first = await node();
    await a.config.write([put('x', 1), put('removed', 1)]);
    await same(a, first);
    await first.close();
    await raw.save();
    const second = await node();
    await second.config.sync();
    proxy.cut();
    await until('a is cut off', () => a.state === 'degraded');
    await change(second, 'x', 'lost');
    await change(second, 'y', 'lost');
    await change(second, 'removed');
    const lost = [...second.config.entries()];
    await second.close();
    await redis.kill();
    await redis.run();
    proxy.heal();
    await until('a is back', () => a.state === 'connected');
    for (let n = 1; n <= later; n++) await change(a, 'x', n);
    const last = await node();
    await same(a, last);
    await until('a has it, too', () => values(a).x === later);
    t.deepEqual(values(last), { x: later, removed: 1 });
    t.is(last.rejected.entries, 0);
    t.is(faults.filter((text) => text.includes('lost the last changes of the configuration')).length, 1);
    const revisions = new Set([...a.config.entries().values()].map(({ revision }) => revision));
    t.false(
      lost.some(([, { revision }]) => revisions.has(revision)),
      'a revision means one thing',
    );
    await change(last, 'x', 'after');
    await same(a, last);
  });

test('a change that was made by what Redis has lost since is a conflict', async (t) => {
  const redis = await RedisServer.start(t);
  const [own, others] = await Promise.all([TcpProxy.open(t, redis.port), TcpProxy.open(t, redis.port)]);
  const raw = new Redis(redis.url);
  raw.on('error', () => {});
  t.teardown(() => raw.disconnect());
  const a = await openNode(t, 'a', { url: `redis://127.0.0.1:${others.port}` });
  const b = await openNode(t, 'b', { url: `redis://127.0.0.1:${own.port}` });
  await a.config.write([put('x', 1)]);
  await same(a, b);
  await raw.save();
  others.cut();
  await until('a is cut off', () => a.state === 'degraded');
  await change(b, 'x', 'lost');
  const seen = b.config.entries().get('x')?.revision ?? 0;
  own.cut();
  await redis.kill();
  await redis.run();
  others.heal();
  await until('a is back', () => a.state === 'connected');
  await change(a, 'x', 2);
  own.heal();
  await until('b is back', () => b.state === 'connected');
  await t.throwsAsync(b.config.write([{ key: 'x', value: 'by what was lost', seen }]), { instanceOf: ConflictError });
  await b.config.sync();
  t.deepEqual(values(b), { x: 2 });
});

test('writes of one node at the same time do not outdate each other', async (t) => {
  const redis = await RedisServer.start(t);
  const node = await openNode(t, 'a', { url: redis.url }, { timing: { ...TIMING, ttl: 60_000, beat: 20_000 } });
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  await node.config.write([put('k', 1)]);
  await raw.config('RESETSTAT');
  await Promise.all(Array.from({ length: 50 }, (_, n) => node.config.write([put(`x/${n}`, n)])));
  t.is(node.config.entries().size, 51);
  const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await raw.info('commandstats')) ?? [];
  t.true(Number(calls) < 250, `${calls} calls`);
});

test('a node that starts without Redis has what it knew, and follows when it comes', async (t) => {
  const file = join(folder(t), 'config.json');
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url }, { file });
  await change(a, 'x', 1);
  await a.close();
  await redis.kill();
  const again = await openNode(t, 'a', { url: redis.url }, { file });
  t.is(again.state, 'degraded');
  t.deepEqual(values(again), { x: 1 });
  await again.config.sync();
  t.true(again.config.stale);
  await redis.run();
  await until('connected', () => again.state === 'connected');
  await change(again, 'x', 2);
  t.false(again.config.stale);
});

test('a write that Redis does not answer may be done, one that it does not get is not; the API distinguishes them', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const cluster = await openNode(t, 'a', { url: `redis://127.0.0.1:${proxy.port}` });
  await until('connected', () => cluster.state === 'connected');
  let swallow = false;
  const config = storeWith(cluster.config, (write) => {
    const written = write();
    if (swallow) proxy.blackhole();
    return written;
  });
  const dynamic = dynamicOf(cluster, config);
  const create = async (name: string) => {
    const [outcome] = await dynamic.createVhosts([{ name, host: { names: [`${name}.example.com`] } }]);
    return outcome !== undefined && 'error' in outcome ? outcome.error.status : 200;
  };
  t.is(await create('one'), 200);
  swallow = true;
  t.is(await create('two'), 504);
  proxy.heal();
  await redis.kill();
  await until('Redis is away', () => cluster.state === 'degraded');
  t.is(await create('three'), 503);
  const error = await t.throwsAsync(cluster.config.write([{ key: 'x', value: 1, seen: 0 }]), {
    instanceOf: UnavailableError,
  });
  t.false(error.mayBeDone);
});

test('an application that is created while its virtual host is deleted does not survive, though the lock was lost', async (t) => {
  const redis = await RedisServer.start(t);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const [a, b] = (await Promise.all(['a', 'b'].map((id) => openNode(t, id, { url: redis.url })))) as [Cluster, Cluster];
  const gate = { entered: Promise.withResolvers<void>(), open: Promise.withResolvers<void>() };
  const paused = storeWith(b.config, async (write) => {
    gate.entered.resolve();
    await gate.open.promise;
    await write();
  });
  const [deleting, creating] = [dynamicOf(a, a.config), dynamicOf(b, paused)];
  const [made] = await deleting.createVhosts([{ name: 'v', host: { names: ['v.example.com'] } }]);
  t.true(made !== undefined && 'made' in made);
  await b.config.sync();
  const created = creating.createApplications('v', () => [{ name: 'late', type: 'live' }]);
  await gate.entered.promise;
  // as when the node that creates it stands still for longer than a lock lasts
  t.is(await raw.del('{kiln:test}:lock:config/v'), 1);
  await deleting.deleteVhost('v');
  gate.open.resolve();
  const [outcome] = await created.catch((error: KilnError) => [{ error }]);
  t.is(outcome !== undefined && 'error' in outcome ? outcome.error.code : undefined, 'vhostNotFound');
  await Promise.all([a.config.sync(), b.config.sync()]);
  for (const { config } of [a, b]) t.deepEqual([...config.entries().keys()], []);
});

test('a change whose lock was lost writes nothing by it: it is made anew', async (t) => {
  const redis = await RedisServer.start(t);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const node = await openNode(t, 'a', { url: redis.url });
  await node.config.write([put('k', 1)]);
  const writer = new ConfigWriter(node, pino({ level: 'silent' }));
  const written: number[] = [];
  let attempts = 0;
  const lost = Promise.withResolvers<AbortSignal>();
  const held = node.withLock.bind(node);
  node.withLock = (key, fn) =>
    held(key, async (signal) => {
      signal.addEventListener('abort', () => lost.resolve(signal));
      return await fn(signal);
    });
  await writer.change('v', async () => {
    attempts++;
    if (attempts === 1) {
      t.is(await raw.set('{kiln:test}:lock:config/v', 'of another', 'PX', 20_000, 'XX'), 'OK');
      t.true((await lost.promise).reason instanceof ConflictError);
      await raw.del('{kiln:test}:lock:config/v');
    }
    await writer.write([{ key: `attempt/${attempts}`, value: 1, seen: 0 }]);
    written.push(attempts);
  });
  t.deepEqual(written, [2]);
  t.deepEqual([...node.config.entries().keys()].sort(), ['attempt/2', 'k']);
});

test('removing much at once looks through the configuration once, in few steps', async (t) => {
  const redis = await RedisServer.start(t);
  const node = await openNode(t, 'a', { url: redis.url });
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const keys = Array.from({ length: 400 }, (_, n) => `tasks/${n}`);
  await node.config.write(keys.map((key) => put(key, 1)));
  await raw.config('RESETSTAT');
  await node.config.write(keys.map((key) => ({ key, seen: node.config.entries().get(key)?.revision ?? 0 })));
  t.is(node.config.entries().size, 0);
  const stats = await raw.info('commandstats');
  const calls = (command: string): number =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  t.is(calls('hkeys'), 1);
  for (const command of ['hdel', 'zadd', 'zrem', 'zcard'])
    t.true(calls(command) < 100, `${command}: ${calls(command)}`);
});

test.serial('a slow disk holds up no write, and is given the last state, not each', async (t) => {
  const redis = await RedisServer.start(t);
  const file = join(folder(t), 'config.json');
  const disk = Promise.withResolvers<void>();
  const saved: number[] = [];
  const { save } = ConfigCopy.prototype;
  ConfigCopy.prototype.save = async function (state) {
    await disk.promise;
    saved.push(state.revision);
    await save.call(this, state);
  };
  t.teardown(() => (ConfigCopy.prototype.save = save));
  const a = await openNode(t, 'a', { url: redis.url }, { file });
  const b = await openNode(t, 'b', { url: redis.url });
  const claim = await a.claim('k', 1, { silence: 'stop' });
  const heard: string[] = [];
  a.config.listen((keys) => void heard.push(...keys));
  for (let n = 0; n < 50; n++) {
    await b.config.write([put(`x/${n}`, n)]);
    await a.config.sync();
    t.is(heard.at(-1), `x/${n}`);
  }
  const beats = async () =>
    (await b.claim('k', 2, { silence: 'stop' })) && b.nodes().find(({ id }) => id === 'a')?.silentMs;
  const since = performance.now();
  await until('longer than a lease lasts', async () => {
    const silent = await beats();
    t.true(silent === undefined || silent < TIMING.ttl);
    return performance.now() - since > 1.5 * TIMING.ttl;
  });
  t.is((await a.ownerOf('k'))?.id, 'a');
  t.true('lease' in claim && claim.lease.valid);
  t.deepEqual(saved, []);
  disk.resolve();
  await a.close();
  t.true(saved.length <= 3, `${saved.length} saves`);
  const text = readFileSync(file, 'utf8');
  t.is(JSON.parse(text).revision, saved.at(-1));
  t.true(text.includes('x/49'), 'the last change is in it');
});
