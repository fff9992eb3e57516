import test from 'ava';
import { MediaProbePool } from '../../../../src/channels/scheduled/media-probe-pool.ts';
import { MediaBusyError } from '../../../../src/channels/scheduled/media-error.ts';
import { until } from '../../../support/time/until.ts';

test('the number of media probes at a time is limited, and the others run in order', async (t) => {
  const looks = new MediaProbePool({ atOnce: 2, withinMs: 60_000 });
  const running = new Set<number>();
  const begun: number[] = [];
  let most = 0;
  const results = await Promise.all(
    [0, 1, 2, 3, 4].map((index) =>
      looks.take(async () => {
        begun.push(index);
        running.add(index);
        most = Math.max(most, running.size);
        await new Promise(setImmediate);
        running.delete(index);
        return index;
      }),
    ),
  );
  t.deepEqual(results, [0, 1, 2, 3, 4]);
  t.deepEqual(begun, [0, 1, 2, 3, 4]);
  t.is(most, 2);
});

test('a look that hangs fails and keeps its place; when all places hang, others fail at once', async (t) => {
  const looks = new MediaProbePool({ atOnce: 2, withinMs: 20 });
  const ends: (() => void)[] = [];
  const signals: AbortSignal[] = [];
  const hang = (): Promise<void> =>
    looks.take((late) => {
      signals.push(late);
      return new Promise((resolve) => ends.push(resolve));
    });
  const message = /does not answer/;
  const [first, second, waiting] = [hang(), hang(), hang()];
  await Promise.all([first, second, waiting].map((one) => t.throwsAsync(one, { message })));
  t.is(signals.length, 2, 'what waited never began');
  t.true(signals.every(({ aborted }) => aborted));
  await t.throwsAsync(hang(), { message });
  t.is(signals.length, 2);
  ends[0]?.();
  await until('a place is free', () => looks.take(async () => true).catch(() => false));
});

test('too many waiting media probes are rejected', async (t) => {
  const looks = new MediaProbePool({ atOnce: 1, withinMs: 60_000, waiting: 2 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const taken = [0, 1, 2].map(() => looks.take(() => promise));
  await t.throwsAsync(
    looks.take(() => promise),
    { instanceOf: MediaBusyError },
  );
  resolve();
  await Promise.all(taken);
  t.is(await looks.take(async () => 7), 7);
});

test('a look that fails gives its place away', async (t) => {
  const looks = new MediaProbePool({ atOnce: 1, withinMs: 60_000 });
  await t.throwsAsync(
    looks.take(async () => {
      throw new Error('no');
    }),
    { message: 'no' },
  );
  t.is(await looks.take(async () => 7), 7);
});
