import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import type { Claim, Cluster, Lease, StatsRow } from '#cluster';
import { startChild } from '../support/cluster/child-node.ts';
import { openNode, TIMING } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

/** A row that all nodes have. */
const row = (counted: number): StatsRow => ({
  key: 'shared',
  counters: { bytes: counted },
  gauges: { viewers: counted },
  latest: { at: counted },
});

function leaseOf(claim: Claim): Lease {
  if ('owner' in claim) throw new Error(`held by ${claim.owner.id}`);
  return claim.lease;
}

/** Everything that is in a Redis, as `key: content`. */
async function everything(raw: Redis): Promise<string[]> {
  const keys = await raw.keys('*');
  return await Promise.all(
    keys.map(async (key) => {
      const kind = await raw.type(key);
      const content =
        kind === 'hash'
          ? await raw.hgetall(key)
          : kind === 'zset'
            ? await raw.zrange(key, 0, -1)
            : kind === 'set'
              ? await raw.smembers(key)
              : kind === 'none'
                ? ''
                : await raw.get(key);
      return `${key}: ${JSON.stringify(content)}`;
    }),
  );
}

/** What every node does in its life: each leaves its traces. @param number of its own */
async function live(node: Cluster, number: number, others: Cluster): Promise<void> {
  leaseOf(await node.claim(`${number}/pushed`, 1, { silence: 'continue', keepMs: 1000 }));
  const taken = leaseOf(await node.claim(`${number}/taken`, 1, { silence: 'stop' }));
  leaseOf(await others.claim(taken.key, 2, { silence: 'stop', take: true }));
  await node.config.write([{ key: `made/${number}`, value: 1, seen: 0 }]);
  await node.reportStats([row(1)]);
  await node.reportStats([row(2), { ...row(1), key: `own ${number}` }]);
  await others.drain(node.self.id);
}

async function open(t: ExecutionContext) {
  const redis = await RedisServer.start(t);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  return { redis, raw };
}

test('nothing in Redis names a node that is gone for good, whichever way it went', async (t) => {
  const { redis, raw } = await open(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const survivor = await openNode(t, 'survivor', { url: redis.url });
  await survivor.reportStats([row(5)]);
  const left = await openNode(t, 'that has left', { url: redis.url });
  await live(left, 1, survivor);
  const former = await openNode(t, 'replaced', { url: redis.url });
  await live(former, 2, survivor);
  const replaced = await openNode(t, 'replaced', { url: redis.url });
  await live(replaced, 3, survivor);
  // nothing answers where it says that it is
  const port = { host: '127.0.0.1', port: 0, advertise: '127.0.0.2', secrets: ['known to the nodes of this test'] };
  const cut = await openNode(t, 'that is cut off for good', { url: `redis://127.0.0.1:${proxy.port}` }, { port });
  await live(cut, 4, survivor);
  const killed = await startChild(t, redis.url, 'killed', 'child', { timing: TIMING });
  const lives = new Map([left, former, replaced, cut].map(({ self }) => [self.incarnation, self.id]));
  await until('all are known', () => survivor.nodes().some(({ id }) => id === 'killed'));
  for (const { id, incarnation } of survivor.nodes()) if (id === 'killed') lives.set(incarnation, id);
  const names = [...new Set([...lives].flat())].map((name) => encodeURIComponent(name));
  const found = async () => (await everything(raw)).filter((text) => names.some((name) => text.includes(name)));
  t.true((await found()).length > 10, 'they have left traces');
  // and those of a recovery
  await raw.del('{kiln:test}:claims');
  await until('it is over', async () => (await raw.hget('{kiln:test}:epoch', 'until')) === '0');
  proxy.cut();
  killed.process.kill('SIGKILL');
  await left.close();
  await former.close();
  await replaced.close();
  let traces: string[] = [];
  try {
    await until('they are forgotten', async () => {
      await survivor.reportStats([row(5)]);
      traces = await found();
      return traces.length === 0;
    });
  } catch {
    t.deepEqual(traces, []);
  }
  const sum = (await survivor.stats(['shared'])).get('shared');
  t.is(sum?.gauges.viewers, 5, 'and what they had is in no sum');
  t.is(sum?.counters.bytes, 5 + 2 + 2 + 2 + 2, 'but what they counted is');
});
