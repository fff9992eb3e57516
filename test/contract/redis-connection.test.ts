import { writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { UnavailableError, type Cluster, type RedisOptions, type StoreReport } from '#cluster';
import { openNode, TIMING } from '../support/cluster/cluster.ts';
import { FakeSentinel } from '../support/redis/fake-sentinel.ts';
import { freePorts } from '../support/network/ports.ts';
import { openRedisCluster } from '../support/redis/redis-cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { standStill } from '../support/time/stand-still.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';
import { CertificateFolder, issue } from '../support/network/x509.ts';

const STOP = { silence: 'stop' } as const;

/** Everything that needs Redis, between two nodes. */
async function works(t: ExecutionContext, a: Cluster, b: Cluster): Promise<void> {
  await until('connected', () => a.state === 'connected' && b.state === 'connected');
  const key = `k/${Math.random()}`;
  const claim = await a.claim(key, 'meta', { ...STOP, keepMs: 1000 });
  t.true('lease' in claim && claim.lease.valid);
  t.is((await b.ownerOf(key))?.meta, 'meta');
  let seen = false;
  b.watch(key, () => (seen = true));
  await until('seen', () => seen);
  await b.withLock('config', async () => b.config.write([{ key, value: 1, seen: 0 }]));
  await a.config.sync();
  t.is(a.config.entries().get(key)?.value, 1);
  await a.reportStats([{ key, counters: { n: 2 }, gauges: { g: 1 }, latest: {} }]);
  t.is((await b.stats([key])).get(key)?.counters.n, 2);
}

async function refused(t: ExecutionContext, id: string, redis: RedisOptions): Promise<void> {
  const node = await openNode(t, id, redis);
  t.is(node.state, 'degraded');
  await t.throwsAsync(node.claim('k', 1, STOP), { instanceOf: UnavailableError });
}

test('an ACL user that may touch the keys of the cluster only', async (t) => {
  const file = (folder: string): string => {
    const path = join(folder, 'redis.conf');
    writeFileSync(
      path,
      [
        'user default off',
        'user kiln on >p@ss/word ~{kiln:test}:* &{kiln:test}:* +@all -@admin -@dangerous +info',
      ].join('\n'),
    );
    return path;
  };
  const redis = await RedisServer.start(t, { configure: file });
  const url = `redis://kiln:${encodeURIComponent('p@ss/word')}@127.0.0.1:${redis.port}`;
  const a = await openNode(t, 'a', { url });
  const b = await openNode(t, 'b', { url: redis.url, username: 'kiln', password: 'p@ss/word' });
  await works(t, a, b);
  await refused(t, 'c', { url: redis.url });
  await refused(t, 'd', { url: redis.url, username: 'kiln', password: 'wrong' });
});

test("TLS, with an authority of one's own and a client certificate", async (t) => {
  const folder = new CertificateFolder(t);
  const authority = issue('authority', { authority: true });
  const server = folder.write('server', issue('localhost', { issuer: authority }));
  const client = issue('client', { issuer: authority });
  const ca = folder.write('ca', authority).certPath;
  const [port = 0] = freePorts(1);
  await RedisServer.start(t, {
    port,
    args: [
      '--tls-port',
      String(port),
      '--tls-cert-file',
      server.certPath,
      '--tls-key-file',
      server.keyPath,
      '--tls-ca-cert-file',
      ca,
    ],
  });
  const url = `rediss://127.0.0.1:${port}`;
  const tls = { ca: authority.cert, cert: client.cert, key: client.key };
  await works(t, await openNode(t, 'a', { url, tls }), await openNode(t, 'b', { url, tls }));
  await refused(t, 'c', { url, tls: { ...tls, ca: issue('stranger', { authority: true }).cert } });
  await refused(t, 'd', { url: `redis://127.0.0.1:${port}` });
});

test('Sentinel: nodes follow the master to where it is', async (t) => {
  const [masterPort = 0, replicaPort = 0, ...ports] = freePorts(5);
  const master = await RedisServer.start(t, { port: masterPort });
  await RedisServer.start(t, { port: replicaPort, args: ['--replicaof', '127.0.0.1', String(masterPort)] });
  // sentinels ask for replicas every ten seconds only
  const asked = new Redis(master.url);
  await until('the replica follows', async () => (await asked.info('replication')).includes('state=online'));
  asked.disconnect();
  const configure = (folder: string): string => {
    const path = join(folder, 'sentinel.conf');
    writeFileSync(
      path,
      [
        `sentinel monitor mymaster 127.0.0.1 ${masterPort} 2`,
        'sentinel down-after-milliseconds mymaster 700',
        'sentinel failover-timeout mymaster 3000',
      ].join('\n'),
    );
    return path;
  };
  await Promise.all(ports.map((port) => RedisServer.start(t, { program: 'redis-sentinel', port, configure })));
  const raw = new Redis({ host: '127.0.0.1', port: ports[0] ?? 0 });
  t.teardown(() => raw.disconnect());
  await until(
    'the sentinels know each other and the replica',
    async () => {
      const text = JSON.stringify(await raw.call('SENTINEL', 'MASTER', 'mymaster'));
      return text.includes('"num-other-sentinels","2"') && text.includes('"num-slaves","1"');
    },
    60_000,
  );
  const redis = { sentinels: ports.map((port) => `redis://127.0.0.1:${port}`), master: 'mymaster' };
  const [a, b] = await Promise.all([openNode(t, 'a', redis), openNode(t, 'b', redis)]);
  await works(t, a, b);
  t.deepEqual(a.stores(), [{ host: '127.0.0.1', port: masterPort }], 'the master, not the sentinels');
  const claim = await a.claim('held', 1, { silence: 'continue' });
  await master.kill();
  await until('degraded', () => a.state === 'degraded');
  // the driver connects again when it hears of the new master, which may be after it has found it by itself
  await until('the replica is the master', async () => {
    const written = await Promise.all(
      [a, b].map((node) => node.claim(`after/${node.self.id}`, 1, STOP).catch(() => undefined)),
    );
    return written.every((claimed) => claimed !== undefined);
  });
  t.true(a.stores().length === 1 && a.stores()[0]?.port !== masterPort);
  t.true('lease' in claim && !claim.lease.signal.aborted);
  await until('held as before', () => 'lease' in claim && claim.lease.valid);
});

test('a new master is announced by Sentinel while the old one is still asked for', async (t) => {
  const [old, next] = await Promise.all([RedisServer.start(t), RedisServer.start(t)]);
  const sentinel = await FakeSentinel.listen(t, old.port);
  const node = await openNode(t, 'a', { sentinels: [sentinel.url], master: 'mymaster' });
  await until('connected', () => node.state === 'connected');
  await until('both of its connections hear of masters', () => sentinel.listening === 2);
  sentinel.tellWhenAsked(next.port);
  await old.kill();
  await until('it follows', () => node.state === 'connected' && node.stores()[0]?.port === next.port);
  t.deepEqual(node.stores(), [{ host: '127.0.0.1', port: next.port }]);
});

test('Redis Cluster: every key is in one slot', async (t) => {
  const { ports, clients, redis } = await openRedisCluster(t);
  const b = await openNode(t, 'b', { cluster: redis.cluster.slice(1) });
  await works(t, await openNode(t, 'a', redis), b);
  t.deepEqual(
    b
      .stores()
      .map(({ port }) => port)
      .toSorted(),
    ports.toSorted(),
    'those that it was not told of, too',
  );
  const keys = (await Promise.all(clients.map((client) => client.keys('*')))).filter((list) => list.length > 0);
  t.is(keys.length, 1);
});

test('Redis Cluster: while the slot is on its way to another node the store is unreachable, and not empty', async (t) => {
  const { ports, clients, redis } = await openRedisCluster(t);
  const [a, b] = [await openNode(t, 'a', redis), await openNode(t, 'b', redis)];
  await until('connected', () => a.state === 'connected' && b.state === 'connected');
  const emptied: string[] = [];
  for (const node of [a, b]) node.events.on('emptied', () => emptied.push(node.self.id));
  const claim = await a.claim('pushed', 1, { silence: 'continue' });
  if ('owner' in claim) return t.fail();
  const { fence } = claim.lease;
  const counts = await Promise.all(clients.map((client) => client.dbsize()));
  const from = counts.findIndex((count) => count > 0);
  const to = (from + 1) % ports.length;
  const [source, target] = [clients[from], clients[to]] as [Redis, Redis];
  const slot = (await source.call('CLUSTER', 'KEYSLOT', '{kiln:test}:')) as number;
  const [sourceId, targetId] = (await Promise.all([source, target].map((one) => one.call('CLUSTER', 'MYID')))) as [
    string,
    string,
  ];
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId);
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId);
  const move = async (keys: readonly string[]) => {
    if (keys.length > 0) await source.call('MIGRATE', '127.0.0.1', ports[to] ?? 0, '', 0, 5000, 'KEYS', ...keys);
  };
  const [some, rest] = [['{kiln:test}:epoch', '{kiln:test}:claims', '{kiln:test}:fence'], () => source.keys('*')];
  await move(some);
  await until('the store is away', () => a.state === 'degraded' && b.state === 'degraded');
  await t.throwsAsync(b.config.write([{ key: 'x', value: 1, seen: 0 }]), { instanceOf: UnavailableError });
  await move(await rest());
  for (const client of [target, ...clients]) await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId);
  await until('it is back', () => a.state === 'connected' && b.state === 'connected');
  await until('confirmed', () => claim.lease.valid);
  t.deepEqual(emptied, []);
  t.is(claim.lease.fence, fence);
  t.is((await b.ownerOf('pushed'))?.fence, fence);
  t.deepEqual(await source.keys('*'), []);
});

test('two clusters of different names share a Redis and nothing else', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url }, { name: 'one' });
  const b = await openNode(t, 'a', { url: redis.url }, { name: 'two}' });
  await a.claim('k', 1, STOP);
  await a.config.write([{ key: 'x', value: 1, seen: 0 }]);
  t.true('lease' in (await b.claim('k', 2, STOP)));
  await b.config.sync();
  t.is(b.config.entries().size, 0);
  t.is(a.nodes().length, 1);
});

test('a Redis that swallows everything costs a bounded time, and is left for one that answers', async (t) => {
  const redis = await RedisServer.start(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const faults: Error[] = [];
  const reports: StoreReport[] = [];
  const onFault = (error: Error): void => void faults.push(error);
  const onStore = (report: StoreReport): void => void reports.push(report);
  const node = await openNode(t, 'a', { url: `redis://127.0.0.1:${proxy.port}` }, { onFault, onStore });
  const states: string[] = [];
  node.events.on('state', (state) => states.push(state));
  proxy.blackhole();
  const calls = await Promise.allSettled([
    node.claim('k', 1, STOP),
    node.config.write([{ key: 'x', value: 1, seen: 0 }]),
    node.stats(['s']),
    node.drain('a'),
    node.withLock('l', async () => 1),
  ]);
  for (const call of calls) t.true(call.status === 'rejected' && call.reason instanceof UnavailableError);
  t.deepEqual([...(await node.list(''))], []);
  await until('degraded', () => node.state === 'degraded');
  // connections that are open stay dead: new ones have to be made
  proxy.heal();
  await until('connected', () => node.state === 'connected');
  // on a slow machine it may have been degraded before it was listened to
  t.is(states.at(-1), 'connected');
  t.deepEqual(faults, []);
  t.deepEqual(
    reports.slice(-2).map(({ reachable, store }) => [reachable, store]),
    [
      [false, `127.0.0.1:${proxy.port}`],
      [true, `127.0.0.1:${proxy.port}`],
    ],
  );
  const [lost] = reports.slice(-2);
  t.is(lost?.reachable === false && lost.reason, 'no answer in time');
});

test('a Redis outage is reported once, and its end once, however often Redis is tried', async (t) => {
  const redis = await RedisServer.start(t);
  const faults: Error[] = [];
  const reports: StoreReport[] = [];
  const onFault = (error: Error): void => void faults.push(error);
  const onStore = (report: StoreReport): void => void reports.push(report);
  const node = await openNode(t, 'a', { url: redis.url }, { onFault, onStore });
  const raw = await node.claim('k', 1, { silence: 'continue' });
  t.true('lease' in raw);
  t.deepEqual(reports, []);
  for (const round of [1, 2]) {
    const before = Date.now();
    await redis.kill();
    await until('it has gone', () => node.state === 'degraded');
    // several attempts to connect, several beats
    for (let attempt = 0; attempt < 5; attempt++) {
      await t.throwsAsync(node.stats(['s']), { instanceOf: UnavailableError });
      await node.reportStats([]);
      await delay(TIMING.beat);
    }
    await redis.run();
    await until('it is back', () => node.state === 'connected');
    t.is(reports.length, 2 * round);
    const [gone, back] = reports.slice(-2) as [StoreReport, StoreReport];
    t.like(gone, { reachable: false, store: `127.0.0.1:${redis.port}`, reason: 'the connection was closed' });
    // it was heard of with the last beat
    t.true(gone.since.getTime() > before - TIMING.ttl && gone.since.getTime() <= Date.now());
    t.like(back, { reachable: true, store: `127.0.0.1:${redis.port}`, since: gone.since });
    t.true(back.reachable && back.awayMs >= 5 * TIMING.beat - 10);
  }
  t.deepEqual(faults, []);
});

test('a connection for messages that fails once is no fault, and one that goes on failing is', async (t) => {
  const redis = await RedisServer.start(t);
  // the first one is for commands, the others are for messages
  const sockets: Socket[] = [];
  let refused = 0;
  const gate = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    if (refused > 0) {
      refused--;
      return void socket.resetAndDestroy();
    }
    sockets.push(socket);
    const target = connect(redis.port, '127.0.0.1').on('error', () => socket.destroy());
    socket.pipe(target).pipe(socket);
    socket.once('close', () => target.destroy());
  });
  await new Promise<void>((resolve) => gate.listen(0, '127.0.0.1', resolve));
  t.teardown(() => gate.close());
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const faults: Error[] = [];
  const node = await openNode(
    t,
    'a',
    { url: `redis://127.0.0.1:${(gate.address() as AddressInfo).port}` },
    { onFault: (error) => faults.push(error) },
  );
  await until('both are connected', () => node.state === 'connected' && sockets.length === 2);
  const fail = async (times: number): Promise<void> => {
    refused = times;
    const next = sockets.length + 1;
    sockets.at(-1)?.resetAndDestroy();
    await until('it is connected again', () => sockets.length === next);
    await until('it listens', async () => {
      const [, count] = (await raw.pubsub('NUMSUB', '{kiln:test}:events')) as [string, number];
      return Number(count) === 1;
    });
  };
  await fail(1);
  t.deepEqual(faults, []);
  await fail(2);
  t.is(node.state, 'connected');
  t.deepEqual(
    faults.map((fault) => fault instanceof UnavailableError),
    [true],
  );
});

test('a Redis that is not there at the start, and then rejects all, is reported with what an operator has to mend', async (t) => {
  const [port = 0] = freePorts(1);
  const reports: StoreReport[] = [];
  const onStore = (report: StoreReport): void => void reports.push(report);
  const url = `redis://:of-this-test@127.0.0.1:${port}`;
  const node = await openNode(t, 'a', { url }, { onStore });
  t.is(node.state, 'degraded');
  t.is(reports.length, 1);
  t.like(reports[0], { reachable: false, store: `127.0.0.1:${port}` });
  t.regex(reports[0]?.reachable === false ? reports[0].reason : '', /ECONNREFUSED/);
  const redis = await RedisServer.start(t, { port, args: ['--requirepass', 'another'] });
  await until('it is refused', () => reports.length === 2);
  t.regex(reports[1]?.reachable === false ? reports[1].reason : '', /^WRONGPASS/);
  await redis.kill();
  await RedisServer.start(t, { port, args: ['--requirepass', 'of-this-test'] });
  await until('it is connected', () => node.state === 'connected');
  t.is(reports.length, 3);
  t.true(reports[2]?.reachable);
  t.false(JSON.stringify(reports).includes('of-this-test'));
});

test.serial('an answer of Redis that came while this process stood still is not late', async (t) => {
  const redis = await RedisServer.start(t);
  const node = await openNode(t, 'a', { url: redis.url });
  t.true('lease' in (await node.claim('before', 1, STOP)));
  const claiming = node.claim('k', 1, STOP);
  await new Promise(setImmediate);
  standStill(1.5 * TIMING.command);
  const claim = await claiming;
  t.true('lease' in claim && claim.lease.valid);
  t.is(node.state, 'connected');
});
