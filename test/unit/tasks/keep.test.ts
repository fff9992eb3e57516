import test from 'ava';
import type { ClaimOptions, Cluster, Json, Lease } from '#cluster';
import { openAlone } from '../../support/cluster/cluster.ts';
import { countingName, CountingKind, publish, readTotal, write } from '../../support/tasks/counting-task.ts';
import { openTasks } from '../../support/tasks/fake-task.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const ONE = countingName('one');
const KEPT = { persistent: true, withinMs: 10_000 };

/** A cluster of one node, and the totals that its leases were told to keep. */
async function noting() {
  const inner = await openAlone();
  const kept: number[] = [];
  const watched = (lease: Lease): Lease =>
    new Proxy(lease, {
      get: (target, key) => {
        if (key === 'keep') {
          return async (value: { readonly value: Json }) => {
            kept.push(readTotal(value.value).total);
            await target.keep(value as unknown as Json);
          };
        }
        const value = Reflect.get(target, key, target) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  const cluster: Cluster = new Proxy(inner, {
    get: (target, key) => {
      if (key === 'claim') {
        return async (path: string, meta: Json, options: ClaimOptions) => {
          const claim = await target.claim(path, meta, options);
          return 'lease' in claim ? { lease: watched(claim.lease) } : claim;
        };
      }
      const value = Reflect.get(target, key, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { cluster, kept };
}

test('progress that a task keeps all the time reaches the store once a second, its last value, and at the end at once', async (t) => {
  virtualTime(t);
  const { cluster, kept } = await noting();
  const node = openTasks(cluster, new CountingKind(undefined, 1));
  t.teardown(async () => {
    await node.tasks.close();
    await cluster.close();
  });
  await node.everywhere.create(ONE, { stream: 'live' }, KEPT);
  const output = await publish(node, 'live');
  await until('it runs', () => node.kind.running.get('one'));
  let total = 0;
  const end = performance.now() + 10_000;
  await until('ten seconds go by', () => {
    write(output, 1);
    total += 1;
    return performance.now() > end;
  });
  t.true(total > 100, `${total} values`);
  t.true(kept.length >= 9 && kept.length <= 12, `${kept.length} writes`);
  t.deepEqual(
    kept,
    kept.toSorted((a, b) => a - b),
  );
  output.input.close('gone');
  await until('the last value is there', () => kept.at(-1) === total, 500);
});
