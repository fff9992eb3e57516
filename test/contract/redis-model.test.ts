import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { Cluster, Lease } from '#cluster';
import { Random } from '../soak/random.ts';
import { mirrored, openNode } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

const KEYS = ['k/1', 'k/2', 'k/3'];
const NODES = 4;
const STEPS = 120;
/** Short, so that much comes to its end; what is not done in time is part of it. */
const TIMING = { ttl: 1200, beat: 150, command: 350, grace: 1500, forget: 4000 } as const;

interface Member {
  readonly node: Cluster;
  readonly proxy: TcpProxy;
  readonly leases: Lease[];
}

/** What must be true of all leases that were ever given, whatever happens. All nodes are in this process: one clock. */
class Model {
  readonly failures = new Set<string>();
  readonly #given: { lease: Lease; id: string; valid: boolean; fence: number }[] = [];
  readonly #highest = new Map<string, number>();
  checks = 0;
  grants = 0;

  given(lease: Lease, id: string): void {
    this.grants += 1;
    this.#given.push({ lease, id, valid: false, fence: 0 });
    this.check();
  }

  check(): void {
    this.checks += 1;
    for (const key of KEYS) {
      const holders = this.#given.filter(({ lease }) => lease.key === key && lease.valid);
      if (holders.length > 1)
        this.failures.add(
          `${key} has holders ${holders.map(({ id, lease }) => `${id} (${lease.fence})`).join(' and ')}`,
        );
    }
    for (const one of this.#given) {
      const { key, valid, fence } = one.lease;
      // a lease that becomes valid, or is made anew, has a fence above all before it
      if (valid && fence !== one.fence) {
        const highest = this.#highest.get(key) ?? 0;
        if (fence <= highest) this.failures.add(`${key} had fence ${highest} before ${fence}`);
        this.#highest.set(key, fence);
        one.fence = fence;
      }
      if (one.lease.signal.aborted && valid) this.failures.add(`${key} is valid and lost`);
    }
  }
}

async function act(random: Random, member: Member, model: Model): Promise<void> {
  const { node, leases } = member;
  const held = leases.filter(({ signal }) => !signal.aborted);
  if (held.length > 0 && random.chance(0.3)) {
    const lease = random.pick(held);
    if (random.chance(0.5)) return await lease.update(random.below(1000)).catch(() => undefined);
    leases.splice(leases.indexOf(lease), 1);
    return await lease.release();
  }
  const silence = random.chance(0.7) ? 'stop' : 'continue';
  // what could not be had is tried again by the next step
  const claim = await node
    .claim(random.pick(KEYS), node.self.id, { silence, take: random.chance(0.1) })
    .catch(() => undefined);
  if (claim === undefined || 'owner' in claim) return;
  leases.push(claim.lease);
  model.given(claim.lease, node.self.id);
}

/** Something breaks. Returns what mends it. */
async function harm(
  random: Random,
  redis: RedisServer,
  members: readonly Member[],
): Promise<() => void | Promise<void>> {
  const { proxy } = random.pick(members);
  switch (random.below(5)) {
    case 0:
      redis.pause();
      return () => redis.resume();
    case 1:
      await redis.kill();
      return () => redis.run();
    case 2:
      proxy.cut();
      return () => proxy.heal();
    case 3:
      proxy.blackhole();
      return () => proxy.heal();
    default:
      for (const one of members) one.proxy.cut();
      return () => members.forEach((one) => one.proxy.heal());
  }
}

for (const seed of [11, 12, 13]) {
  test(`at most one valid holder at any time, and fences only grow (seed ${seed})`, async (t) => {
    const random = new Random(seed);
    const model = new Model();
    const redis = await RedisServer.start(t);
    const members = await Promise.all(
      Array.from({ length: NODES }, async (_, n): Promise<Member> => {
        const proxy = await TcpProxy.open(t, redis.port);
        return {
          proxy,
          node: await openNode(t, `n${n}`, { url: `redis://127.0.0.1:${proxy.port}` }, { timing: TIMING }),
          leases: [],
        };
      }),
    );
    // who has never heard of another cannot ask it
    await until('they see each other', () => members.every(({ node }) => node.nodes().length === NODES));
    const { owners } = mirrored((members[0] as Member).node, '');
    const checking = setInterval(() => model.check(), 2);
    t.teardown(() => clearInterval(checking));
    let mend: (() => void | Promise<void>) | undefined;
    const acts: Promise<void>[] = [];
    for (let step = 0; step < STEPS; step++) {
      acts.push(act(random, random.pick(members), model));
      await delay(random.below(40));
      if (mend === undefined && random.chance(0.08)) mend = await harm(random, redis, members);
      else if (mend !== undefined && random.chance(0.12)) {
        await mend();
        mend = undefined;
      }
      model.check();
    }
    await mend?.();
    await Promise.all(acts);
    await until('connected', () => members.every(({ node }) => node.state === 'connected'));
    const valid = (): Lease[] => members.flatMap(({ leases }) => leases.filter((lease) => lease.valid));
    const summary = (list: Iterable<readonly [string, number]>): string => JSON.stringify([...list].sort());
    // nothing is listed that nobody holds, and everything that is held
    const listed = await until('lists, watches and holders agree', async () => {
      const lists = await Promise.all(
        members.map(async ({ node }) => [...(await node.list(''))].map(([key, { fence }]) => [key, fence] as const)),
      );
      const held = summary(valid().map(({ key, fence }) => [key, fence] as const));
      return (
        lists.every((list) => summary(list) === held) &&
        summary([...owners].map(([key, { fence }]) => [key, fence] as const)) === held &&
        held
      );
    });
    model.check();
    t.deepEqual([...model.failures], []);
    t.log(`${model.grants} leases, ${model.checks} checks, at the end ${listed}`);
    t.true(model.grants > 0 && model.checks > STEPS);
  });
}
