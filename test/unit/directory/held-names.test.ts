import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { Registry } from '../../../src/core/registry.ts';
import { addVhost } from '../../support/server/live.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { nodeParts } from '../../support/cluster/node-parts.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const SOURCE = { type: 'Rtmp', kind: 'rtmp' } as const;
const OPTIONS = { replace: false, maxConnections: 0, silence: 'continue' } as const;

/** Nodes of one cluster, each with the application `app`. */
async function open(t: ExecutionContext, seed: number, count = 2) {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, seed);
  const node = async (id: string) => {
    const registry = new Registry();
    addVhost(registry, {});
    const lines: Record<string, unknown>[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const own = await cluster.open(id);
    const calls = { claim: 0, forward: 0 };
    for (const name of ['claim', 'forward'] as const) {
      const call = own[name].bind(own) as (...args: unknown[]) => unknown;
      Object.assign(own, {
        [name]: (...args: unknown[]) => {
          calls[name]++;
          return call(...args);
        },
      });
    }
    const application = registry.vhost('default').application('app');
    const parts = nodeParts(own, registry, log);
    const publish = (signal?: AbortSignal) => parts.names.publish(application, 'live', SOURCE, { ...OPTIONS, signal });
    return { ...parts, lines, counted: calls, publish };
  };
  const nodes = await Promise.all(Array.from({ length: count }, (_, n) => node(`${n}`)));
  const held = nodes[1]!;
  return { cluster, holder: nodes[0]!, held, third: nodes[2] };
}

test.serial(
  'a publisher that comes back after its node has died is held, and gets the name when it is free',
  async (t) => {
    const { cluster, holder, held } = await open(t, 1);
    await holder.publish();
    cluster.kill('0');
    const publishing = held.publish();
    await until('it is held', () => held.names.held === 1);
    const input = await publishing;
    t.false(input.closed);
    t.is(held.names.held, 0);
    t.true(held.counted.claim <= 4, `the name was claimed ${held.counted.claim} times`);
    t.like(held.lines, [{ event: 'publisher.held', node: '0', held: 1 }]);
  },
);

test.serial('a publisher whose name another node has, which answers, is refused at once', async (t) => {
  const { holder, held } = await open(t, 2);
  const first = await holder.publish();
  const since = performance.now();
  await t.throwsAsync(held.publish(), { code: 'streamExists' });
  t.true(performance.now() - since < 1000);
  t.false(first.closed);
  t.is(held.names.held, 0);
  t.deepEqual(held.lines, []);
});

test.serial('a holder that stood still for a moment keeps its name: held publishers are rejected', async (t) => {
  const { cluster, holder, held } = await open(t, 3);
  const first = await holder.publish();
  cluster.pause('0');
  const publishing = held.publish();
  publishing.catch(() => {});
  await until('it is held', () => held.names.held === 1);
  setTimeout(() => cluster.resume('0'), 800);
  await t.throwsAsync(publishing, { code: 'streamExists' });
  t.false(first.closed);
});

test.serial('a holder that cannot be reached and lives is waited for no longer than encoders wait', async (t) => {
  const { cluster, holder, held } = await open(t, 4);
  const first = await holder.publish();
  cluster.split(['0'], ['1']);
  const since = performance.now();
  await t.throwsAsync(held.publish(), { code: 'streamNameUnconfirmed' });
  t.true(performance.now() - since < 10_000, `it took ${performance.now() - since} ms`);
  t.false(first.closed);
  t.is(held.names.held, 0);
  t.true(held.counted.claim <= 4, `the name was claimed ${held.counted.claim} times`);
});

test.serial('a publisher that leaves while it is held takes the name from no other', async (t) => {
  const { cluster, holder, held, third } = await open(t, 5, 3);
  await holder.publish();
  cluster.kill('0');
  const gone = new AbortController();
  const leaving = held.publish(gone.signal);
  leaving.catch(() => {});
  await until('it is held', () => held.names.held === 1);
  gone.abort();
  await t.throwsAsync(leaving, { code: 'clientGone' });
  t.is(held.names.held, 0);
  t.false((await third!.publish()).closed);
});

test.serial('many publishers that are held at once ask together, and a limited number of them is held', async (t) => {
  const { cluster, holder, held } = await open(t, 6);
  await holder.publish();
  cluster.kill('0');
  const outcomes = await Promise.allSettled(Array.from({ length: 1100 }, () => held.publish()));
  const codes = new Map<string, number>();
  for (const outcome of outcomes) {
    const code = outcome.status === 'fulfilled' ? 'published' : (outcome.reason as { code: string }).code;
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  t.deepEqual(Object.fromEntries(codes), { published: 1, streamExists: 999, tooManyWaiting: 100 });
  t.true(held.counted.forward < 20, `the holder was asked ${held.counted.forward} times`);
});
