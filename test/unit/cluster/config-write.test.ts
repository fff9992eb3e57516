import test from 'ava';
import { ConfigCopy } from '../../../cluster/config-copy.ts';
import { Rejections } from '../../../cluster/rejections.ts';
import { UnavailableError } from '../../../cluster/errors.ts';
import type { Connection } from '../../../cluster/redis/connection.ts';
import { RedisConfig } from '../../../cluster/redis/config.ts';
import { Signatures } from '../../../cluster/redis/signatures.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';

for (const [outcome, reason] of [
  [['moved', '', '7'], /other nodes write/],
  [['wait'], /may have lost something/],
] as const)
  test(`a write that is not done in time says why: ${outcome[0]}`, async (t) => {
    const config = new RedisConfig({
      connection: { run: async () => outcome } as unknown as Connection,
      copy: await ConfigCopy.open({ file: undefined, onDamaged: () => t.fail() }),
      timing: timingOf({ ttl: 10, beat: 5, grace: 15 }),
      signatures: new Signatures('kiln', ['secret']),
      rejections: new Rejections(() => t.fail()),
      pull: () => Promise.resolve(),
      opened: () => Promise.resolve(),
      isDegraded: () => false,
      onFault: () => t.fail(),
    });
    const error = await t.throwsAsync(config.write([{ key: 'x', value: 1, seen: 0 }]), { message: reason });
    t.true(error instanceof UnavailableError && !error.mayBeDone);
  });
