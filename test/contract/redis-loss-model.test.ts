import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import type { Cluster, Lease, Owner } from '#cluster';
import { Random } from '../soak/random.ts';
import { openNode } from '../support/cluster/cluster.ts';
import { ALL } from '../support/runner/all.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until, untilWorks } from '../support/time/until.ts';

const KEYS = ['k/1', 'k/2', 'k/3', 'k/4'];
const STEPS = 120;
const MOST = 7;
const TIMING = { ttl: 2400, beat: 150, command: 500, grace: 5000, forget: 9000 } as const;
/** What Redis may lose alone. */
const SETS = ['claims', 'claims:of', 'claims:lost', 'claims:log', 'claims:gone', 'claims:revision'];
const LOSABLE = [
  ...SETS,
  'fence',
  'epoch',
  'epoch:nodes',
  'clock',
  'nodes',
  'nodes:heard',
  'nodes:gone',
  'config',
  'config:log',
  'config:revision',
  'staged',
];

interface Member {
  readonly node: Cluster;
  readonly proxy: TcpProxy;
  readonly leases: Set<Lease>;
}

/** What must be true of all leases, whatever Redis loses. All nodes are in this process: one clock. */
class Model {
  readonly failures = new Set<string>();
  readonly #leases = new Map<Lease, { readonly id: string; wasValid: boolean }>();
  grants = 0;
  losses = 0;

  given(lease: Lease, { node: { self }, leases }: Member): void {
    this.grants += 1;
    leases.add(lease);
    const state = { id: self.id, wasValid: false };
    this.#leases.set(lease, state);
    const onLoss = (): void => {
      const { owner } = lease.signal.reason as { readonly owner?: Owner };
      if (state.wasValid && owner !== undefined)
        this.failures.add(`${state.id} lost ${lease.key} (${lease.fence}) to ${owner.id} (${owner.fence})`);
      leases.delete(lease);
    };
    lease.signal.addEventListener('abort', onLoss, { once: true });
    this.check();
  }

  check(): void {
    for (const key of KEYS) {
      const holders = [...this.#leases].filter(([lease]) => lease.key === key && lease.valid);
      if (holders.length > 1)
        this.failures.add(`${key} has holders ${holders.map(([{ fence }, { id }]) => `${id} (${fence})`).join(', ')}`);
    }
    for (const [lease, state] of this.#leases) state.wasValid = lease.valid;
  }
}

async function open(t: ExecutionContext, redis: RedisServer, id: string): Promise<Member> {
  const proxy = await TcpProxy.open(t, redis.port);
  const node = await openNode(t, id, { url: `redis://127.0.0.1:${proxy.port}` }, { timing: TIMING });
  return { node, proxy, leases: new Set() };
}

async function take(random: Random, key: string, member: Member, model: Model): Promise<void> {
  const silence = random.chance(0.5) ? 'stop' : 'continue';
  const claim = await member.node.claim(key, null, { silence, keepMs: 5000 }).catch(() => undefined);
  if (claim !== undefined && 'lease' in claim) model.given(claim.lease, member);
}

async function act(random: Random, member: Member, model: Model, written: Set<string>): Promise<unknown> {
  const { node, leases } = member;
  const [own] = leases;
  if (own !== undefined && random.chance(0.35)) {
    leases.delete(own);
    return await own.release();
  }
  if (random.chance(0.2)) {
    const key = `c${random.below(1e9)}`;
    return await node.config.write([{ key, value: 1, seen: 0 }]).then(
      // where Redis is lost before it can be read back, nobody else has it
      () => node.config.entries().has(key) && void written.add(key),
      () => undefined,
    );
  }
  // who keeps something says so again and again, which may find the loss before a beat does
  if (own !== undefined && random.chance(0.3)) return await own.keep(random.below(9)).catch(() => undefined);
  await take(random, random.pick(KEYS), member, model);
}

for (const seed of ALL ? [1, 2, 3, 4] : [1])
  test(`no holder loses its key and no key has two holders, whatever Redis loses (seed ${seed})`, async (t) => {
    const random = new Random(seed);
    const model = new Model();
    const redis = await RedisServer.start(t);
    const raw = new Redis(redis.url);
    raw.on('error', () => {});
    t.teardown(() => raw.disconnect());
    const members = await Promise.all(['a', 'b', 'c'].map((id) => open(t, redis, id)));
    const [{ node: first }] = members as [Member];
    const opened = () =>
      until('everybody may claim', async () => {
        const claim = await first.claim('probe', null, { silence: 'stop' }).catch(() => undefined);
        return claim !== undefined && ('owner' in claim || claim.lease.valid);
      });
    await until('they see each other', () => members.every(({ node }) => node.nodes().length === members.length));
    await opened();
    const checking = setInterval(() => model.check(), 2);
    t.teardown(() => clearInterval(checking));
    const written = new Set<string>();
    const acts: Promise<unknown>[] = [];
    const harm = async (): Promise<void> => {
      model.losses += 1;
      const share = random.pick([0, 0.5, 1]);
      const cut = members.filter(() => random.chance(share));
      for (const { proxy } of cut) proxy.cut();
      let isNew = false;
      switch (random.below(4)) {
        case 0:
          await redis.kill();
          await delay(random.below(200));
          await redis.run();
          isNew = true;
          break;
        case 1:
          await raw.flushall().catch(() => undefined);
          break;
        default:
          await raw.del(`{kiln:test}:${random.pick(LOSABLE)}`).catch(() => undefined);
      }
      if (random.chance(0.5) && members.length < MOST) {
        // one that knows nobody, alone at a new Redis for some seconds, founds a cluster: another has to be there first
        if (isNew) {
          members[0]?.proxy.heal();
          await until('one is back', () => first.state === 'connected');
        }
        // knows nobody, and wants everything
        const late = await open(t, redis, `late${members.length}`);
        members.push(late);
        acts.push(...KEYS.map((key) => take(random, key, late, model)));
      }
      await delay(random.below(600));
      for (const { proxy } of cut) proxy.heal();
      if (random.chance(0.4)) await until('connected', () => members.every(({ node }) => node.state === 'connected'));
    };
    for (let step = 0; step < STEPS; step++) {
      acts.push(act(random, random.pick(members), model, written));
      await delay(random.below(30));
      if (random.chance(0.1)) await raw.save().catch(() => undefined);
      if (random.chance(0.08)) await harm();
    }
    await Promise.all(acts);
    await opened();
    await untilWorks('what is listed is what is held', async () => {
      for (const { node } of members) {
        const listed = [...(await node.list('k'))].map(([key, { id, fence }]) => [key, id, fence]).sort();
        const held = members.flatMap(({ node: { self }, leases }) =>
          Array.from(leases, ({ key, fence }) => [key, self.id, fence]),
        );
        assert.deepEqual(listed, held.sort(), `seen from ${node.self.id}`);
      }
    });
    for (const { node } of members) await node.config.sync();
    const entries = first.config.entries();
    t.deepEqual([...model.failures], []);
    t.deepEqual(
      [...written].filter((key) => !entries.has(key)),
      [],
    );
    t.log(`${model.grants} leases, ${model.losses} losses, ${written.size} entries, ${members.length} nodes`);
    t.true(model.grants > 0 && model.losses > 0);
  });
