import test from 'ava';
import { ConfigCopy } from '../../../cluster/config-copy.ts';
import { Rejections } from '../../../cluster/rejections.ts';
import type { Connection } from '../../../cluster/redis/connection.ts';
import { RedisConfig } from '../../../cluster/redis/config.ts';
import { Signatures } from '../../../cluster/redis/signatures.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';
import { until } from '../../support/time/until.ts';

const EPOCH = { id: 7, from: 0, revision: 0 };

test('entries that could not be signed anew are fetched and signed again', async (t) => {
  const given: unknown[] = [];
  const faults: string[] = [];
  const run = async (_script: unknown, list: unknown): Promise<unknown> => {
    given.push(list);
    if (given.length === 1) throw new Error('Redis is away');
    return 1;
  };
  const config = new RedisConfig({
    connection: { run } as unknown as Connection,
    copy: await ConfigCopy.open({ file: undefined, onDamaged: () => t.fail() }),
    timing: timingOf(),
    signatures: new Signatures('kiln', ['present', 'former']),
    rejections: new Rejections(() => t.fail()),
    pull: () => Promise.resolve(),
    opened: () => Promise.resolve(),
    isDegraded: () => false,
    onFault: ({ message }) => void faults.push(message),
  });
  const text = `1 ${new Signatures('kiln', ['former']).signEntry('x', 1, '2')}`;
  const changes = { revision: 1, full: true, entries: [['x', text]] } as const;
  config.apply(EPOCH, changes);
  t.is(config.since, 1);
  await until('it has failed', () => faults.length === 1);
  t.deepEqual(faults, ['Redis is away']);
  t.is(config.since, 0);
  config.apply(EPOCH, changes);
  t.is(given.length, 2);
  t.is(config.since, 1);
});
