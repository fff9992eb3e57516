import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { LostError, UnavailableError, type Claim, type Cluster, type Lease } from '#cluster';
import { SCRIPTS } from '../../cluster/redis/scripts.ts';
import { startChild } from '../support/cluster/child-node.ts';
import { mirrored, openNode, TIMING } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

const STOP = { silence: 'stop' } as const;
const CONTINUE = { silence: 'continue' } as const;
const CLAIMS = '{kiln:test}:claims';

function leaseOf(claim: Claim): Lease {
  if ('owner' in claim) throw new Error(`held by ${claim.owner.id}`);
  return claim.lease;
}

function admin(t: ExecutionContext, redis: RedisServer): Redis {
  const client = new Redis(redis.url);
  t.teardown(() => client.disconnect());
  return client;
}

const seeEachOther = (...nodes: readonly Cluster[]) =>
  until('nodes see each other', () => nodes.every((node) => node.nodes().length === nodes.length));

/** A node on a way of its own to Redis. */
async function openOnProxy(t: ExecutionContext, redis: RedisServer, id: string) {
  const proxy = await TcpProxy.open(t, redis.port);
  return { proxy, node: await openNode(t, id, { url: `redis://127.0.0.1:${proxy.port}` }) };
}

/** How often each command was executed, those of scripts among them. */
async function executed(raw: Redis): Promise<Map<string, number>> {
  const lines = (await raw.info('commandstats')).matchAll(/^cmdstat_(\S+):calls=(\d+)/gm);
  return new Map([...lines].map(([, name, calls]) => [name as string, Number(calls)]));
}

/** Commands that Redis executes for a beat. */
async function costOfBeats(raw: Redis): Promise<number> {
  const BEATS = 20;
  const total = (counts: Map<string, number>): number => [...counts.values()].reduce((sum, calls) => sum + calls, 0);
  const scripts = (counts: Map<string, number>): number => counts.get('evalsha') ?? 0;
  const before = await executed(raw);
  const after = await until('some beats', async () => {
    const now = await executed(raw);
    return scripts(now) - scripts(before) >= BEATS && now;
  });
  const asked = (after.get('info') ?? 0) - (before.get('info') ?? 0);
  return (total(after) - total(before) - asked) / (scripts(after) - scripts(before));
}

test('a beat costs Redis the same, whatever its node holds', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const raw = admin(t, redis);
  await until('open', async () => 'lease' in (await a.claim('first', null, STOP)));
  const idle = await costOfBeats(raw);
  const leases = await Promise.all(
    Array.from({ length: 400 }, async (_, n) => leaseOf(await a.claim(`k/${n}`, n, { ...STOP, keepMs: 1000 }))),
  );
  // otherwise reading the claims would count
  await a.list('k');
  const busy = await costOfBeats(raw);
  t.log(`${idle.toFixed(1)} commands a beat, ${busy.toFixed(1)} with ${leases.length} claims`);
  t.true(busy < idle + 5);
  const since = performance.now();
  await until('longer than a lease lasts', () => performance.now() - since > 1.5 * TIMING.ttl);
  t.true(leases.every(({ valid }) => valid));
});

test('a kept value stays as long as its claim, however short it is kept after that', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const keeping = { ...STOP, keepMs: 500 };
  const first = leaseOf(await a.claim('k', 1, keeping));
  await first.keep('kept');
  const since = performance.now();
  await until('longer than it is kept', () => performance.now() - since > 1500);
  t.is(await admin(t, redis).get('{kiln:test}:kept:k'), '"kept"');
  await first.release();
  const left = await admin(t, redis).pttl('{kiln:test}:kept:k');
  t.true(left <= 500, 'it ends with its time');
});

test('all claims of a node that died are dropped, more than one step takes among them, and reported', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const raw = admin(t, redis);
  const { process: child } = await startChild(t, redis.url, 'child', 'k');
  const { incarnation = '' } = (await a.ownerOf('k')) ?? {};
  // it would give up what it has not claimed
  child.kill('SIGSTOP');
  const COUNT = 1000;
  const revision = Number(await raw.get('{kiln:test}:claims:revision'));
  // at once: entries that do not fit are a loss
  const pipeline = raw.multi();
  for (let n = 0; n < COUNT; n++) {
    pipeline.hset(CLAIMS, `many/${n}`, `1 t${n} child ${incarnation} stop 0 ${n}`);
    pipeline.zadd(`${CLAIMS}:of`, 0, `${incarnation} stop many/${n}`);
    pipeline.zadd(`${CLAIMS}:log`, revision + 1, `many/${n}`);
  }
  pipeline.incr(`${CLAIMS}:revision`);
  await pipeline.exec();
  const { owners } = mirrored(a, '');
  await until('all are known', () => owners.size === COUNT + 1);
  child.kill('SIGKILL');
  await until('all are gone', () => owners.size === 0);
  const sentinels = 1;
  t.is(await raw.hlen(CLAIMS), sentinels);
  t.is(await raw.zcard(`${CLAIMS}:of`), sentinels);
});

test('a process that takes the id of another does not get its keys before the time of that one is over', async (t) => {
  const redis = await RedisServer.start(t);
  const { node: old, proxy } = await openOnProxy(t, redis, 'a');
  const b = await openNode(t, 'b', { url: redis.url });
  const lease = leaseOf(await old.claim('k', 1, STOP));
  const pushed = leaseOf(await old.claim('pushed', 1, CONTINUE));
  proxy.blackhole();
  const again = await openNode(t, 'a', { url: redis.url });
  await until('it is known', () => b.nodes().some(({ incarnation }) => incarnation === again.self.incarnation));
  const next: Lease[] = [];
  for (const [node, key] of [
    [again, 'k'],
    [b, 'pushed'],
  ] as const) {
    const claim = await until('its time is over', async () => {
      const answer = await node.claim(key, 2, STOP);
      return 'lease' in answer && answer;
    });
    t.false(lease.valid || pushed.valid);
    next.push(claim.lease);
  }
  proxy.heal();
  await until('it hears of its loss', () => pushed.signal.aborted);
  t.true(pushed.signal.reason instanceof LostError);
  t.true(next.every(({ valid }) => valid));
});

test('a node that hears that another has its id holds nothing any more when its time is over', async (t) => {
  const redis = await RedisServer.start(t);
  const old = await openNode(t, 'a', { url: redis.url });
  const lease = leaseOf(await old.claim('k', 1, STOP));
  const again = await openNode(t, 'a', { url: redis.url });
  const next = await until('free', async () => {
    const claim = await again.claim('k', 2, STOP);
    return 'lease' in claim && claim.lease;
  });
  t.false(lease.valid);
  await until('it is lost', () => lease.signal.aborted);
  t.true(next.valid);
});

test('a key that was taken over without a new holder is free when the time of its former owner is over', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const b = await openNode(t, 'b', { url: redis.url });
  await seeEachOther(a, b);
  const lease = leaseOf(await a.claim('k', 1, CONTINUE));
  redis.pause();
  // Redis executes it, and the answer comes too late
  await t.throwsAsync(b.claim('k', 2, { ...STOP, take: true }), { instanceOf: UnavailableError });
  redis.resume();
  await until('its former owner hears of it', () => lease.signal.aborted);
  t.false(lease.valid);
  leaseOf(
    await until('free', async () => {
      const claim = await a.claim('k', 3, STOP).catch(() => undefined);
      return claim !== undefined && 'lease' in claim && claim;
    }),
  );
});

test('a lease that ran out without Redis is given up there when it is back', async (t) => {
  const redis = await RedisServer.start(t);
  const { node: a, proxy } = await openOnProxy(t, redis, 'a');
  const b = await openNode(t, 'b', { url: redis.url });
  await seeEachOther(a, b);
  const lease = leaseOf(await a.claim('k', 1, STOP));
  proxy.blackhole();
  await until('lost', () => lease.signal.aborted);
  proxy.heal();
  await until('connected', () => a.state === 'connected');
  leaseOf(
    await until('free', async () => {
      const claim = await b.claim('k', 2, STOP);
      return 'lease' in claim && claim;
    }),
  );
  t.false(lease.valid);
});

/** Waits so many times to live, and calls back again and again meanwhile. */
async function during(lives: number, step: () => Promise<unknown>): Promise<void> {
  const since = performance.now();
  await until(`${lives} times to live`, async () => {
    await step();
    return performance.now() - since > lives * TIMING.ttl;
  });
}

test('a node that is cut off from Redis alone keeps what exists anyway, listed and in use, as long as it says that it lives', async (t) => {
  const redis = await RedisServer.start(t);
  const { node: a, proxy } = await openOnProxy(t, redis, 'a');
  const b = await openNode(t, 'b', { url: redis.url });
  await seeEachOther(a, b);
  const pushed = leaseOf(await a.claim('pushed', 1, CONTINUE));
  const single = leaseOf(await a.claim('single', 1, STOP));
  const { fence } = pushed;
  const { owners } = mirrored(b, '');
  a.serve(async () => ({ status: 200, headers: {}, body: Buffer.from('answer of a') }));
  await until('known', () => owners.has('pushed') && owners.has('single'));
  proxy.cut();
  await until('what may run only once has ended', () => !owners.has('single'));
  t.false(single.valid);
  await until('shown as silent', () => b.nodes().find(({ id }) => id === 'a')?.state === 'silent');
  await during(2.5, async () => {
    t.true(owners.has('pushed'));
    t.like(await b.claim('pushed', 2, STOP), { owner: { id: 'a', fence } });
    t.is(b.nodes().find(({ id }) => id === 'a')?.state, 'silent');
  });
  const call = { method: 'GET', path: '/', headers: {}, body: Buffer.alloc(0) };
  t.is((await b.forward(a.self, call, 5000)).body.toString(), 'answer of a');
  leaseOf(await b.claim('single', 2, STOP));
  proxy.heal();
  await until('confirmed', () => pushed.valid);
  t.is(pushed.fence, fence);
  await until('heard of', () => b.nodes().find(({ id }) => id === 'a')?.state === 'ready');
  proxy.cut();
  await until('lapsed', () => !pushed.valid);
  await a.close();
  await until('its process is gone, and what it had', () => !owners.has('pushed'));
  // dropped claims are announced at once, the state of the node comes with the next beat
  await until('shown as lost', () => b.nodes().find(({ id }) => id === 'a')?.state === 'lost');
  leaseOf(await b.claim('pushed', 2, STOP));
});

test('a process that stands still for less than its time to live and the time to answer loses nothing that exists anyway', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const { process: child, lines } = await startChild(t, redis.url, 'child', 'k', CONTINUE);
  const { owners } = mirrored(a, '');
  await until('known', () => owners.has('k'));
  const before = owners.get('k')?.fence;
  child.kill('SIGSTOP');
  await until('it is asked', () => a.nodes().find(({ id }) => id === 'child')?.state === 'silent');
  t.like(await a.claim('k', 2, STOP), { owner: { id: 'child' } });
  child.kill('SIGCONT');
  await until('heard of', () => a.nodes().find(({ id }) => id === 'child')?.state === 'ready');
  t.is(owners.get('k')?.fence, before);
  t.false(lines.includes('lost'));
});

test("a claim that may run only once is free when the time of its node is over, before that node's fate is known", async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const raw = admin(t, redis);
  const { process: child } = await startChild(t, redis.url, 'child', 'k');
  const { owners } = mirrored(a, '');
  const stateOf = (node: string) => a.nodes().find(({ id }) => id === node)?.state;
  await until('known', () => owners.has('k'));
  child.kill('SIGSTOP');
  await until('it is told of', () => !owners.has('k'));
  // the process accepts connections, so it has time to answer
  t.is(await raw.hget('{kiln:test}:nodes:fate', 'child'), null);
  leaseOf(await a.claim('k', 2, STOP));
  await until('it is shown as silent, by the next beat', () => stateOf('child') === 'silent');
});

test('a node that was not heard of for its time to live claims nothing before it beats', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  // as the beat of another node leaves it
  await admin(t, redis)
    .multi()
    .zadd('{kiln:test}:nodes:heard', 1, 'a')
    .zadd('{kiln:test}:nodes:gone', 1, `${a.self.incarnation} stop`)
    .exec();
  const lease = leaseOf(await a.claim('k', 1, STOP));
  t.is((await a.ownerOf('k'))?.fence, lease.fence);
});

for (const [what, asker] of [
  ['is not heard of itself', async () => 'dead 1'],
  ['was started anew since', async (a: Cluster) => `${a.self.id} before`],
  ['has not heard that it is to', async (a: Cluster) => `${a.self.id} ${a.self.incarnation}`],
] as const)
  test(`a node that is to ask another one and ${what} holds up no claim`, async (t) => {
    const redis = await RedisServer.start(t);
    const a = await openNode(t, 'a', { url: redis.url });
    const { process: child } = await startChild(t, redis.url, 'child', 'k', CONTINUE);
    const { incarnation = '' } = (await a.ownerOf('k')) ?? {};
    await admin(t, redis).set(`{kiln:test}:asked:${incarnation}`, await asker(a));
    child.kill('SIGSTOP');
    await until('it is not heard of', () => a.nodes().find(({ id }) => id === 'child')?.state === 'silent');
    t.like(await a.claim('k', 2, STOP), { owner: { id: 'child' } });
    await until('free', async () => 'lease' in (await a.claim('k', 2, STOP)));
  });

test('the verdict of an earlier asker about a silent node is rejected', async (t) => {
  const redis = await RedisServer.start(t);
  const { node: a, proxy } = await openOnProxy(t, redis, 'a');
  const b = await openNode(t, 'b', { url: redis.url });
  await seeEachOther(a, b);
  leaseOf(await a.claim('pushed', 1, CONTINUE));
  proxy.cut();
  await until('it is not heard of', () => b.nodes().find(({ id }) => id === 'a')?.state === 'silent');
  const keys = ['{kiln:test}:', '{kiln:test}:epoch'];
  const late = ['a', a.self.incarnation, 'gone', TIMING.ttl, 'c'];
  await admin(t, redis).eval(SCRIPTS.verdict.text, keys.length, ...keys, ...late);
  t.like(await b.claim('pushed', 2, STOP), { owner: { id: 'a' } });
});

test('the note about dropped claims of a dead process is removed when another one has its id', async (t) => {
  const redis = await RedisServer.start(t);
  const a = await openNode(t, 'a', { url: redis.url });
  const raw = admin(t, redis);
  const { process: child } = await startChild(t, redis.url, 'child', 'k');
  const { incarnation = '' } = (await a.ownerOf('k')) ?? {};
  const isNoted = async () => (await raw.hexists(`${CLAIMS}:lost`, incarnation)) === 1;
  child.kill('SIGKILL');
  await until('its claim is dropped', isNoted);
  await openNode(t, 'child', { url: redis.url });
  await t.notThrowsAsync(until('forgotten', async () => !(await isNoted())));
});
