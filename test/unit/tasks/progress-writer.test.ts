import test from 'ava';
import { ConflictError, UnavailableError, type Change, type ConfigStore, type Json } from '#cluster';
import { definitionKey } from '../../../src/tasks/definition.ts';
import { ProgressWriter } from '../../../src/tasks/progress-writer.ts';
import { openAlone } from '../../support/cluster/cluster.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const name = (n: number) => ({ kind: 'fake', vhost: 'v', app: 'a', id: `t${n}` });
const key = (n: number) => definitionKey(name(n));
const progress = { uid: 'u', fence: 1, step: 1, value: 7 };

/** Definitions of tasks, and who else writes: `others` has a turn before each write of progress. */
async function contested(count: number, others: (write: ConfigStore['write'], config: ConfigStore) => Promise<void>) {
  const { config } = await openAlone();
  const write = config.write.bind(config);
  const value = { spec: null, persistent: true, stored: false, uid: 'u' };
  await write(Array.from({ length: count }, (_, n) => ({ key: key(n), value, seen: 0 })));
  const writes: { readonly keys: readonly string[]; readonly at: number }[] = [];
  config.write = async (changes: readonly Change[], expected) => {
    writes.push({ keys: changes.map((change) => change.key), at: performance.now() });
    await others(write, config);
    await write(changes, expected);
  };
  return { config, writes };
}

/** Somebody changes a definition, and nothing of it that progress is concerned with. */
async function touch(write: ConfigStore['write'], config: ConfigStore, keys: readonly string[]) {
  const present = config.entries();
  await write(
    keys.map((path) => {
      const { value, revision } = present.get(path) ?? { value: null, revision: 0 };
      const { touched = 0, ...rest } = value as { touched?: number };
      return { key: path, value: { ...rest, touched: touched + 1 } as unknown as Json, seen: revision };
    }),
  );
}

test('entries that others change meanwhile are written again together', async (t) => {
  virtualTime(t);
  let turn = 0;
  const { config, writes } = await contested(100, async (write, store) => {
    turn += 1;
    if (turn === 2)
      await touch(
        write,
        store,
        Array.from({ length: 50 }, (_, n) => key(n)),
      );
  });
  const writer = new ProgressWriter(config);
  await Promise.all(Array.from({ length: 100 }, (_, n) => writer.save(name(n), progress)));
  for (let n = 0; n < 100; n++) t.like(config.entries().get(key(n))?.value, { progress });
  // the first alone, then the others, of which half are in conflict
  t.true(writes.length <= 5, `${writes.length} writes`);
});

test('progress that others change all the time is given up, after pauses; the rest does not fail for it', async (t) => {
  virtualTime(t);
  const { config, writes } = await contested(20, (write, store) => touch(write, store, [key(3)]));
  const writer = new ProgressWriter(config);
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => writer.save(name(n), progress)));
  for (const [n, outcome] of outcomes.entries()) {
    if (n === 3) t.true(outcome.status === 'rejected' && outcome.reason instanceof ConflictError);
    else t.is(outcome.status, 'fulfilled');
    if (n !== 3) t.like(config.entries().get(key(n))?.value, { progress });
  }
  const tries = writes.filter(({ keys }) => keys.includes(key(3))).map(({ at }) => at);
  t.true(tries.length > 2 && tries.length < 10, `${tries.length} tries`);
  t.true((tries.at(-1) ?? 0) - (tries.at(-2) ?? 0) > 100, 'with a pause');
  t.true(writes.length < 15, `${writes.length} writes`);
});

test('an error while the changes of others are read rises, and later progress is saved', async (t) => {
  let isContested = true;
  const { config } = await contested(2, async (write, store) => {
    if (isContested) await touch(write, store, [key(0)]);
  });
  const { sync } = config;
  config.sync = () => Promise.reject(new UnavailableError('the store is away'));
  const writer = new ProgressWriter(config);
  await t.throwsAsync(writer.save(name(0), progress), { instanceOf: UnavailableError });
  isContested = false;
  config.sync = sync;
  await writer.save(name(1), progress);
  t.like(config.entries().get(key(1))?.value, { progress });
});
