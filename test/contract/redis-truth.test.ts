import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import type { Claim, Cluster, Lease, Owner, StoreSettings } from '#cluster';
import { openNode, TIMING } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

const STOP = { silence: 'stop' } as const;
const CONTINUE = { silence: 'continue', keepMs: 30_000 } as const;
/** What would last that long has failed. */
const ENDLESS = { ...TIMING, grace: 600_000 } as const;

function leaseOf(claim: Claim): Lease {
  if ('owner' in claim) throw new Error(`held by ${claim.owner.id}`);
  return claim.lease;
}

const seeEachOther = (...nodes: readonly Cluster[]) =>
  until('nodes see each other', () =>
    nodes.every((node) => node.nodes().length === nodes.length && node.nodes().every(({ state }) => state === 'ready')),
  );
const connected = (...nodes: Cluster[]) => until('connected', () => nodes.every(({ state }) => state === 'connected'));
const degraded = (...nodes: Cluster[]) => until('degraded', () => nodes.every(({ state }) => state === 'degraded'));

function admin(t: ExecutionContext, redis: RedisServer): Redis {
  const client = new Redis(redis.url);
  client.on('error', () => {});
  t.teardown(() => client.disconnect());
  return client;
}

test('a Redis that comes back a little older ends nothing and gives nothing away', async (t) => {
  const redis = await RedisServer.start(t);
  const timing = ENDLESS;
  const [a, b, c] = [
    await openNode(t, 'a', { url: redis.url }, { timing }),
    await openNode(t, 'b', { url: redis.url }, { timing }),
    await openNode(t, 'c', { url: redis.url }, { timing }),
  ];
  await seeEachOther(a, b, c);
  const first = leaseOf(await a.claim('moved', 1, CONTINUE));
  const second = leaseOf(await a.claim('again', 1, CONTINUE));
  await admin(t, redis).save();
  await first.release();
  await second.release();
  const moved = leaseOf(await b.claim('moved', 2, CONTINUE));
  const again = leaseOf(await a.claim('again', 2, STOP));
  const young = leaseOf(await b.claim('young', 2, CONTINUE));
  const leases = { moved, again, young };
  await redis.kill();
  await degraded(a, b, c);
  await redis.run();
  const rivals = Object.keys(leases).map((key) =>
    until('an answer', () => c.claim(key, 3, STOP).catch(() => undefined)),
  );
  const owners = (await Promise.all(rivals)).map((claim) => ('owner' in claim ? claim.owner.id : 'c'));
  t.deepEqual(owners, ['b', 'a', 'b']);
  await until('confirmed', () => Object.values(leases).every(({ valid }) => valid));
  t.false(Object.values(leases).some(({ signal }) => signal.aborted));
  t.is((await c.ownerOf('moved'))?.meta, 2);
});

test('a Redis that has followed another one for a moment gets back what that one did not have', async (t) => {
  const redis = await RedisServer.start(t);
  const other = await RedisServer.start(t);
  const [raw, rawOther] = [admin(t, redis), admin(t, other)];
  const [a, b] = [await openNode(t, 'a', { url: redis.url }), await openNode(t, 'b', { url: redis.url })];
  await seeEachOther(a, b);
  const held = leaseOf(await a.claim('held', 1, CONTINUE));
  const released = leaseOf(await b.claim('released', 1, CONTINUE));
  const follow = async (client: Redis, { port }: RedisServer) => {
    await client.replicaof('127.0.0.1', port);
    await until('it follows', async () => (await client.info('replication')).includes('master_link_status:up'));
    await client.replicaof('NO', 'ONE');
  };
  await follow(rawOther, redis);
  // nothing of this is seen by the fences
  await held.update(2);
  await released.release();
  await until('both know it', () => b.list('').then((owners) => owners.get('held')?.meta === 2 && owners.size === 1));
  await follow(raw, other);
  const late = await openNode(t, 'late', { url: redis.url });
  for (const node of [a, b, late])
    await until(`${node.self.id} knows what is so`, async () => {
      const owners = await node.list('');
      return owners.size === 1 && owners.get('held')?.meta === 2;
    });
  t.true(held.valid);
});

test('a node that knew nothing gets no name that is in use when Redis comes back older', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await openNode(t, 'a', { url: `redis://127.0.0.1:${proxy.port}` }, { timing: ENDLESS });
  await seeEachOther(a);
  await admin(t, redis).save();
  const pushed = leaseOf(await a.claim('pushed', 1, CONTINUE));
  await redis.kill();
  proxy.cut();
  await degraded(a);
  await redis.run();
  const late = await openNode(t, 'late', { url: redis.url }, { timing: ENDLESS });
  await connected(late);
  const rival = late.claim('pushed', 2, STOP);
  await until('the rival waits', () => late.nodes().length === 2);
  proxy.heal();
  const claim = await rival;
  t.is('owner' in claim && claim.owner.id, 'a');
  t.false(pushed.signal.aborted);
});

for (const lost of [
  'claims',
  'claims:of',
  'claims:lost',
  'claims:log',
  'fence',
  'epoch',
  'nodes',
  'nodes:heard',
  'nodes:gone',
  'config',
  'config:log',
])
  test(`no claim ends or is given away when Redis loses ${lost} alone`, async (t) => {
    const redis = await RedisServer.start(t);
    const a = await openNode(t, 'a', { url: redis.url }, { timing: ENDLESS });
    const b = await openNode(t, 'b', { url: redis.url }, { timing: ENDLESS });
    await seeEachOther(a, b);
    await a.config.write([{ key: 'x', value: 1, seen: 0 }]);
    const pushed = leaseOf(await a.claim('pushed', 1, CONTINUE));
    const single = leaseOf(await a.claim('single', 1, STOP));
    await b.ownerOf('pushed');
    const raw = admin(t, redis);
    await raw.del(`{kiln:test}:${lost}`);
    const claims = await Promise.all([b.claim('pushed', 2, STOP), b.claim('single', 2, STOP)]);
    t.deepEqual(
      claims.map((claim) => 'owner' in claim && claim.owner.id),
      ['a', 'a'],
    );
    await until('valid', () => pushed.valid && single.valid);
    t.false(pushed.signal.aborted || single.signal.aborted);
    const late = await openNode(t, 'late', { url: redis.url }, { timing: ENDLESS });
    await late.config.sync();
    t.is(late.config.entries().get('x')?.value, 1);
    leaseOf(await late.claim('free', 1, STOP));
    // nothing else is taken for a node
    const heard = await raw.zrange('{kiln:test}:nodes:heard', 0, -1);
    t.deepEqual(heard.sort(), ['a', 'b', 'late']);
  });

test('an emptied Redis serves again as soon as all nodes have said what they have', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url }, { timing: ENDLESS });
  const b = await openNode(t, 'b', { url: redis.url }, { timing: ENDLESS });
  await seeEachOther(a, b);
  await a.config.write([{ key: 'x', value: 1, seen: 0 }]);
  const held = leaseOf(await a.claim('held', 1, CONTINUE));
  await admin(t, redis).flushall();
  leaseOf(await b.claim('new', 1, STOP));
  await b.config.write([{ key: 'y', value: 1, seen: 0 }]);
  t.deepEqual([...b.config.entries().keys()].sort(), ['x', 'y']);
  t.is((await b.ownerOf('held'))?.id, 'a');
  t.false(held.signal.aborted);
});

test('a claim of a node that was cut off for long is confirmed before other nodes may take it', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await openNode(t, 'a', { url: `redis://127.0.0.1:${proxy.port}` }, { timing: ENDLESS });
  const b = await openNode(t, 'b', { url: redis.url }, { timing: ENDLESS });
  await seeEachOther(a, b);
  const pushed = leaseOf(await a.claim('pushed', 1, CONTINUE));
  proxy.cut();
  await until('lapsed', () => !pushed.valid);
  await admin(t, redis).flushall();
  const rival = b.claim('pushed', 2, STOP);
  proxy.heal();
  await until('confirmed', () => pushed.valid);
  const claim = await rival;
  t.is('owner' in claim && claim.owner.id, 'a');
});

test('a node reports which settings of Redis endanger its data', async (t) => {
  const redis = await RedisServer.start(t, { args: ['--maxmemory-policy', 'allkeys-lru'] });
  const reports: StoreSettings[] = [];
  await openNode(t, 'a', { url: redis.url }, { onSettings: (settings) => reports.push(settings) });
  await until('reported', () => reports.length > 0);
  t.deepEqual(reports, [{ evictionPolicy: 'allkeys-lru', writesAlone: false }]);
});

test('a node that knows no other does not open an emptied Redis before others have claimed again', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await openNode(t, 'a', { url: `redis://127.0.0.1:${proxy.port}` }, { timing: ENDLESS });
  await seeEachOther(a);
  const pushed = leaseOf(await a.claim('pushed', 1, CONTINUE));
  proxy.cut();
  await degraded(a);
  await admin(t, redis).flushall();
  const late = await openNode(t, 'late', { url: redis.url }, { timing: ENDLESS });
  await connected(late);
  const rival = late.claim('pushed', 2, STOP);
  await until('the rival has asked again and again', () => late.nodes().some(({ uptimeMs }) => uptimeMs > 1000));
  proxy.heal();
  const claim = await rival;
  t.is('owner' in claim && claim.owner.id, 'a');
  t.false(pushed.signal.aborted);
});

test('a claim that changed hands after the restored state of Redis stays with its last holder', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const url = `redis://127.0.0.1:${proxy.port}`;
  const a = await openNode(t, 'a', { url }, { timing: ENDLESS });
  const b = await openNode(t, 'b', { url }, { timing: ENDLESS });
  await seeEachOther(a, b);
  const first = leaseOf(await a.claim('moved', 1, CONTINUE));
  await admin(t, redis).save();
  await first.release();
  const moved = leaseOf(await b.claim('moved', 2, STOP));
  await redis.kill();
  proxy.cut();
  await degraded(a, b);
  await redis.run();
  const late = await openNode(t, 'late', { url: redis.url }, { timing: ENDLESS });
  await connected(late);
  const rival = late.claim('moved', 3, STOP);
  proxy.heal();
  const claim = await rival;
  t.is('owner' in claim && claim.owner.id, 'b');
  await until('confirmed', () => moved.valid);
  t.false(moved.signal.aborted);
});

test('a restart during a recovery loses no configuration', async (t) => {
  const redis = await RedisServer.start(t, { durable: true });
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await openNode(t, 'a', { url: redis.url }, { timing: ENDLESS });
  const b = await openNode(t, 'b', { url: `redis://127.0.0.1:${proxy.port}` }, { timing: ENDLESS });
  await seeEachOther(a, b);
  await a.config.write([{ key: 'x', value: 1, seen: 0 }]);
  await b.config.sync();
  // without b the recovery does not end
  proxy.cut();
  await admin(t, redis).flushall();
  await until('in recovery', async () => (await admin(t, redis).exists('{kiln:test}:epoch:nodes')) === 1);
  await redis.kill();
  await degraded(a);
  await redis.run();
  await connected(a);
  proxy.heal();
  await a.config.write([{ key: 'y', value: 1, seen: 0 }]);
  t.deepEqual([...a.config.entries().keys()].sort(), ['x', 'y']);
  const late = await openNode(t, 'late', { url: redis.url }, { timing: ENDLESS });
  await late.config.sync();
  t.deepEqual([...late.config.entries().keys()].sort(), ['x', 'y']);
});

test('an entry that was removed stays removed on every node when Redis comes back as it was before', async (t) => {
  const redis = await RedisServer.start(t);
  const open = async (id: string) => {
    const proxy = await TcpProxy.open(t, redis.port);
    return { proxy, node: await openNode(t, id, { url: `redis://127.0.0.1:${proxy.port}` }, { timing: ENDLESS }) };
  };
  const [a, b] = [await open('a'), await open('b')];
  await seeEachOther(a.node, b.node);
  await a.node.config.write([{ key: 'x', value: 1, seen: 0 }]);
  await b.node.config.sync();
  const raw = admin(t, redis);
  await raw.save();
  b.proxy.cut();
  await a.node.config.write([{ key: 'x', seen: a.node.config.entries().get('x')?.revision ?? 0 }]);
  a.proxy.cut();
  await redis.kill();
  await redis.run();
  b.proxy.heal();
  await until('b is there', async () => (await raw.hget('{kiln:test}:epoch:nodes', 'b')) === '2');
  a.proxy.heal();
  await connected(a.node);
  await a.node.config.write([{ key: 'y', value: 1, seen: 0 }]);
  for (const { node } of [a, b]) {
    await connected(node);
    await node.config.sync();
    t.deepEqual([...node.config.entries().keys()], ['y'], node.self.id);
  }
});

test('a lost clock of Redis ends nothing, however far it was behind', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url }, { timing: ENDLESS });
  const b = await openNode(t, 'b', { url: redis.url }, { timing: ENDLESS });
  await seeEachOther(a, b);
  const raw = admin(t, redis);
  // as if Redis had been away for an hour in all
  await raw.hincrby('{kiln:test}:clock', 'now', -3_600_000);
  const isBack = async (node: string) => Number(await raw.zscore('{kiln:test}:nodes:heard', node)) < Date.now() - 3e6;
  await until('beats at that time', async () => (await isBack('a')) && (await isBack('b')));
  const held = leaseOf(await a.claim('held', 1, STOP));
  await b.ownerOf('held');
  const seen: (Owner | undefined)[] = [];
  b.watch('held', (changes) => seen.push(...changes.map(({ owner }) => owner)));
  await raw.del('{kiln:test}:clock');
  const claim = await b.claim('held', 2, STOP);
  t.is('owner' in claim && claim.owner.id, 'a');
  t.true(b.nodes().every(({ state }) => state === 'ready'));
  t.false(seen.includes(undefined));
  t.false(held.signal.aborted);
});

test('a state of an earlier epoch is not taken for the present one', async (t) => {
  const redis = await RedisServer.start(t);
  const raw = admin(t, redis);
  const a = await openNode(t, 'a', { url: redis.url }, { timing: ENDLESS });
  await seeEachOther(a);
  await a.config.write([{ key: 'x', value: 1, seen: 0 }]);
  await raw.save();
  const epoch = () => Number(a.config.position.split('.')[0]);
  const first = epoch();
  await raw.del('{kiln:test}:claims');
  await until('a new epoch', () => epoch() > first);
  const second = epoch();
  await redis.kill();
  await degraded(a);
  await redis.run();
  await until('another epoch', () => epoch() !== second);
  t.true(epoch() > second);
  t.is(a.config.entries().get('x')?.value, 1);
});

for (const lost of ['staged', 'epoch:nodes'])
  test(`no configuration is lost when Redis loses ${lost} during a recovery`, async (t) => {
    const redis = await RedisServer.start(t);
    const raw = admin(t, redis);
    const proxy = await TcpProxy.open(t, redis.port);
    const a = await openNode(t, 'a', { url: redis.url }, { timing: ENDLESS });
    const b = await openNode(t, 'b', { url: `redis://127.0.0.1:${proxy.port}` }, { timing: ENDLESS });
    await seeEachOther(a, b);
    await a.config.write([{ key: 'x', value: 1, seen: 0 }]);
    await b.config.sync();
    const pushed = leaseOf(await b.claim('pushed', 1, CONTINUE));
    proxy.cut();
    await raw.flushall();
    await until('a has offered its copy', async () => (await raw.hget('{kiln:test}:epoch', 'offered')) === '1');
    await raw.del(`{kiln:test}:${lost}`);
    const rival = a.claim('pushed', 2, STOP);
    proxy.heal();
    const claim = await rival;
    t.is('owner' in claim && claim.owner.id, 'b');
    t.false(pushed.signal.aborted);
    await a.config.sync();
    t.is(a.config.entries().get('x')?.value, 1);
  });
