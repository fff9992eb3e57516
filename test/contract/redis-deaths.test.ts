import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import type { Claim, Cluster, Lease, NodeIdentity, RedisClusterOptions, RedisOptions } from '#cluster';
import { startChild } from '../support/cluster/child-node.ts';
import { openNode, SECRET, TIMING } from '../support/cluster/cluster.ts';
import { Forwarder } from '../support/network/forwarder.ts';
import { freePorts } from '../support/network/ports.ts';
import { openRedisCluster } from '../support/redis/redis-cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

const STOP = { silence: 'stop' } as const;
const CONTINUE = { silence: 'continue' } as const;
/** No time ends a lease or a node. */
const ENDLESS = { ...TIMING, ttl: 600_000, grace: 600_000, forget: 900_000 } as const;
/** A node binds to the one and is reached by the other, where a test can close the way. */
const [BOUND, REACHED] = ['127.0.0.1', '127.0.0.2'];

function leaseOf(claim: Claim): Lease {
  if ('owner' in claim) throw new Error(`held by ${claim.owner.id}`);
  return claim.lease;
}

const seeEachOther = (...nodes: readonly Cluster[]) =>
  until('nodes see each other', () =>
    nodes.every((node) => node.nodes().length === nodes.length && node.nodes().every(({ state }) => state === 'ready')),
  );

/** Waits until a node's subscription was seen by a beat: from then on it can be buried. */
async function seen(t: ExecutionContext, url: string, ...ids: readonly string[]): Promise<Redis> {
  const client = new Redis(url);
  client.on('error', () => {});
  t.teardown(() => client.disconnect());
  await until('seen', async () => {
    const fields = await client.hkeys('{kiln:test}:nodes:seen');
    return ids.every((id) => fields.includes(id));
  });
  return client;
}

/** Nodes that note who is buried. */
function witnesses() {
  const buried: NodeIdentity[] = [];
  const open = (
    t: ExecutionContext,
    id: string,
    redis: RedisOptions,
    options: Partial<RedisClusterOptions> = {},
  ): Promise<Cluster> =>
    openNode(t, id, redis, { timing: ENDLESS, onMarkedDead: (node) => buried.push(node), ...options });
  return { buried, open, names: () => buried.map(({ id }) => id) };
}

/** A node whose port is reached by a way that can be closed. */
async function openBehindForwarder(
  t: ExecutionContext,
  open: ReturnType<typeof witnesses>['open'],
  id: string,
  redis: RedisOptions,
) {
  const node = await open(t, id, redis, { port: { host: BOUND, port: 0, advertise: REACHED, secrets: [SECRET] } });
  await until('it has an address', () => node.nodes().some((row) => row.id === id && row.address !== undefined));
  const { port } = new URL(node.nodes().find((row) => row.id === id)?.address ?? '');
  return { node, way: await Forwarder.open(t, { from: REACHED, to: BOUND, port: Number(port) }) };
}

/** Waits until a node has been reached by another one: before that a refusal of its port proves nothing. */
const met = (from: Cluster, { self: to }: Pick<Cluster, 'self'>) =>
  until('reached', async () => {
    const call = { method: 'GET', path: '/', headers: {}, body: Buffer.alloc(0) };
    return (await from.forward(to, call, 1000).catch(() => undefined)) !== undefined;
  });

test('the claims of a killed process are free at once, and nodes that were not involved are notified', async (t) => {
  const redis = await RedisServer.start(t);
  const { open, names } = witnesses();
  const nodes = await Promise.all(['a', 'b', 'd', 'e'].map((id) => open(t, id, { url: redis.url })));
  // of those that no other test gets: a process that took the port since would hide the death
  const [port] = freePorts(1) as [number];
  const child = await startChild(t, redis.url, 'c', 'key', { timing: ENDLESS, port });
  await until('all see it', () =>
    nodes.every((node) => node.nodes().filter(({ state }) => state === 'ready').length === 5),
  );
  await seen(t, redis.url, 'c');
  // the two nodes that watch it
  const [a, b] = nodes as [Cluster, Cluster];
  const self = a.nodes().find(({ id }) => id === 'c') as NodeIdentity;
  await Promise.all([met(a, { self }), met(b, { self })]);
  child.process.kill('SIGKILL');
  await until('free', async () => 'lease' in (await a.claim('key', 1, STOP)));
  await until('all know it', () =>
    nodes.every((node) => node.nodes().some(({ id, state }) => id === 'c' && state === 'lost')),
  );
  await until('each node tells it', () => names().length >= nodes.length);
  t.deepEqual(names(), ['c', 'c', 'c', 'c']);
});

test('many claims of a killed process are freed in steps, and what it kept is inherited', async (t) => {
  const redis = await RedisServer.start(t);
  const { open } = witnesses();
  const a = await open(t, 'a', { url: redis.url });
  const proxy = await TcpProxy.open(t, redis.port);
  const { node: b, way } = await openBehindForwarder(t, open, 'b', { url: `redis://127.0.0.1:${proxy.port}` });
  await seeEachOther(a, b);
  await met(a, b);
  await seen(t, redis.url, 'b');
  const keys = Array.from({ length: 700 }, (_, n) => `many/${n}`);
  const leases: Lease[] = [];
  // a busy machine does not answer all of them in time
  for (let at = 0; at < keys.length; at += 50)
    leases.push(
      ...(await Promise.all(
        keys.slice(at, at + 50).map(async (key) => leaseOf(await b.claim(key, 1, { ...CONTINUE, keepMs: 60_000 }))),
      )),
    );
  await leases[699]?.keep('for the next');
  await until('a knows them', async () => (await a.list('many')).size === keys.length);
  // as if its process was gone
  way.close();
  proxy.cut();
  await until('free', async () => (await a.list('many')).size === 0);
  t.is(leaseOf(await a.claim('many/699', 1, STOP)).inherited, 'for the next');
});

test('a node that stands still, is drained, or whose connections to Redis are all closed at once, is not buried', async (t) => {
  t.timeout(300_000);
  const redis = await RedisServer.start(t);
  const { open, names } = witnesses();
  const [a, b] = [await open(t, 'a', { url: redis.url }), await open(t, 'b', { url: redis.url })];
  const child = await startChild(t, redis.url, 'c', 'key', { timing: ENDLESS });
  await until('all see it', () => [a, b].every((node) => node.nodes().length === 3));
  const raw = await seen(t, redis.url, 'a', 'b', 'c');
  for (let round = 0; round < 2; round++) {
    child.process.kill('SIGSTOP');
    await delay(3000);
    // what calls it finds it silent, and not closed
    const to = a.nodes().find(({ id }) => id === 'c') as NodeIdentity;
    await t.throwsAsync(a.forward(to, { method: 'GET', path: '/', headers: {}, body: Buffer.alloc(0) }, 200));
    child.process.kill('SIGCONT');
  }
  for (let round = 0; round < 20; round++) {
    await raw.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await raw.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await delay(round * 10);
  }
  await until('connected', () => [a, b].every(({ state }) => state === 'connected'));
  await a.drain('c');
  await until('it drains', () => b.nodes().some(({ id, state }) => id === 'c' && state === 'draining'));
  const said = child.lines.length;
  await until('it acts', () => child.lines.length > said + 5);
  t.deepEqual(names(), []);
  t.false(child.lines.includes('lost'));
  t.deepEqual(await raw.hgetall('{kiln:test}:nodes:buried'), {});
});

test('a node that is cut off from Redis alone is not buried, nor one whose port alone refuses', async (t) => {
  const redis = await RedisServer.start(t);
  const { open, names } = witnesses();
  const a = await open(t, 'a', { url: redis.url });
  const proxy = await TcpProxy.open(t, redis.port);
  const cut = await open(t, 'cut', { url: `redis://127.0.0.1:${proxy.port}` });
  const { node: refusing, way } = await openBehindForwarder(t, open, 'refusing', { url: redis.url });
  await seeEachOther(a, cut, refusing);
  const raw = await seen(t, redis.url, 'a', 'cut', 'refusing');
  const leases = [leaseOf(await cut.claim('cut', 1, CONTINUE)), leaseOf(await refusing.claim('refusing', 1, CONTINUE))];
  await met(a, refusing);
  await met(a, cut);
  proxy.cut();
  way.close();
  await until('cut', () => cut.state === 'degraded');
  const asked = async () =>
    Number(/calls=(\d+)/.exec((await raw.info('commandstats')).match(/cmdstat_evalsha:.*/)?.[0] ?? '')?.[1]);
  const since = await asked();
  await until('time has gone by', async () => (await asked()) > since + 30);
  t.deepEqual(names(), []);
  t.deepEqual(await raw.hgetall('{kiln:test}:nodes:buried'), {});
  for (const key of ['cut', 'refusing']) t.is((await a.ownerOf(key))?.id, key);
  proxy.heal();
  await until('back', () => cut.state === 'connected');
  t.false(leases.some(({ signal }) => signal.aborted));
});

test('a node that was marked dead and lives stops what it has at once, and joins anew', async (t) => {
  const redis = await RedisServer.start(t);
  const { open, names } = witnesses();
  const a = await open(t, 'a', { url: redis.url });
  const proxy = await TcpProxy.open(t, redis.port);
  const { node: b, way } = await openBehindForwarder(t, open, 'b', { url: `redis://127.0.0.1:${proxy.port}` });
  await seeEachOther(a, b);
  await met(a, b);
  const raw = await seen(t, redis.url, 'b');
  const lease = leaseOf(await b.claim('key', 1, CONTINUE));
  way.close();
  proxy.cut();
  await until('buried', () => names().length > 0);
  proxy.heal();
  await until('it stops', () => lease.signal.aborted);
  await until('it is back', () => a.nodes().some(({ id, state }) => id === 'b' && state === 'ready'));
  t.deepEqual([...new Set(names())], ['b']);
  t.true(names().length >= 2, 'the accused tells of it, too');
  t.is(leaseOf(await a.claim('key', 1, STOP)).valid, true);
  t.true(leaseOf(await b.claim('other', 1, STOP)).valid);
  t.false('lease' in (await b.claim('key', 1, STOP)));
  t.deepEqual(await raw.hgetall('{kiln:test}:nodes:buried'), {});
});

test('a process that is started anew under its id and address has at once what the one before had', async (t) => {
  const redis = await RedisServer.start(t);
  const [port] = freePorts(1) as [number];
  const child = await startChild(t, redis.url, 'c', 'key', { timing: ENDLESS, silence: 'continue', port });
  await seen(t, redis.url, 'c');
  const ended = once(child.process, 'exit');
  child.process.kill('SIGKILL');
  await ended;
  const { open } = witnesses();
  const again = await open(t, 'c', { url: redis.url }, { port: { host: BOUND, port, secrets: [SECRET] } });
  t.true(leaseOf(await again.claim('key', 1, STOP)).valid);
});

test('a process that takes the id of another gets nothing that a subscription or another address speaks for', async (t) => {
  const redis = await RedisServer.start(t);
  const { open } = witnesses();
  const at = (host: string, port: number) => ({ port: { host, port, advertise: REACHED, secrets: [SECRET] } });
  const subscribed = await open(t, 'subscribed', { url: redis.url }, at(BOUND, 0));
  const proxy = await TcpProxy.open(t, redis.port);
  const moved = await open(t, 'moved', { url: `redis://127.0.0.1:${proxy.port}` });
  await seeEachOther(subscribed, moved);
  const raw = await seen(t, redis.url, 'subscribed', 'moved');
  for (const node of [subscribed, moved]) leaseOf(await node.claim(node.self.id, 1, CONTINUE));
  proxy.cut();
  await until('its subscription is gone', async () => {
    const answer = await raw.call('PUBSUB', 'NUMSUB', `{kiln:test}:alive:moved:${moved.self.incarnation}`);
    return (answer as [string, number])[1] === 0;
  });
  const { address = '' } = moved.nodes().find(({ id }) => id === 'subscribed') ?? {};
  const again = [
    await open(t, 'subscribed', { url: redis.url }, at('127.0.0.3', Number(new URL(address).port))),
    await open(t, 'moved', { url: redis.url }),
  ];
  t.is(again[1]?.nodes().find(({ id }) => id === 'subscribed')?.address, address);
  for (const node of again) {
    const claim = await node.claim(node.self.id, 1, STOP);
    t.like(claim, { owner: { id: node.self.id } });
    t.not('owner' in claim && claim.owner.incarnation, node.self.incarnation);
  }
});

test('in a Redis Cluster, where a subscription may be counted elsewhere, no living node is marked dead', async (t) => {
  const { redis } = await openRedisCluster(t);
  const { open, names } = witnesses();
  const parts = await Promise.all(['a', 'b', 'c'].map((id) => openBehindForwarder(t, open, id, redis)));
  const nodes = parts.map(({ node }) => node);
  await seeEachOther(...nodes);
  for (const from of nodes) for (const to of nodes) if (from !== to) await met(from, to);
  const leases = await Promise.all(nodes.map(async (node) => leaseOf(await node.claim(node.self.id, 1, CONTINUE))));
  for (const { way } of parts) way.close();
  const before = nodes.map((node) => node.nodes()[0]?.uptimeMs ?? 0);
  await until('beats go on', () =>
    nodes.every((node, at) => (node.nodes()[0]?.uptimeMs ?? 0) > (before[at] ?? 0) + 2000),
  );
  t.deepEqual(names(), []);
  t.false(leases.some(({ signal }) => signal.aborted));
});
