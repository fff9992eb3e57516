import test from 'ava';
import { EventLoop } from '../../../../src/stats/metrics/event-loop.ts';
import { Exposition } from '../../../../src/stats/metrics/exposition.ts';
import { linesOf, valueOf } from '../../../support/api/exposition.ts';
import { until } from '../../../support/time/until.ts';

test.serial('an event loop that is held for a while shows in the histogram of its delay', async (t) => {
  const loop = new EventLoop();
  t.teardown(() => loop.close());
  const exposition = new Exposition(loop.families);
  const scrape = async () => (await exposition.scrape(undefined)).body.toString();
  await until('the delay is measured', async () => {
    return (valueOf(await scrape(), 'kiln_event_loop_delay_seconds_count') ?? 0) > 5;
  });
  const above = (body: string): number => {
    const buckets = linesOf(body, 'kiln_event_loop_delay_seconds_bucket');
    const upTo = buckets.find(({ labels }) => labels.le === '0.25')?.value ?? 0;
    return (buckets.at(-1)?.value ?? 0) - upTo;
  };
  const before = above(await scrape());
  const held = performance.now();
  while (performance.now() - held < 400);
  await until('the delay was noticed', async () => above(await scrape()) > before);
  const body = await scrape();
  const counts = linesOf(body, 'kiln_event_loop_delay_seconds_bucket').map(({ value }) => value);
  t.deepEqual(
    counts,
    counts.toSorted((a, b) => a - b),
  );
  t.is(counts.at(-1), valueOf(body, 'kiln_event_loop_delay_seconds_count'));
  t.true((valueOf(body, 'kiln_event_loop_active_seconds_total') ?? 0) >= 0.4);
});

test.serial('garbage collection is counted', async (t) => {
  const loop = new EventLoop();
  t.teardown(() => loop.close());
  const exposition = new Exposition(loop.families);
  let kept: object[] = [];
  await until('garbage was collected', async () => {
    kept = Array.from({ length: 100_000 }, (_, index) => ({ index }));
    const { body } = await exposition.scrape(undefined);
    return linesOf(body.toString(), 'kiln_gc_pause_seconds_count').some(({ value }) => value > 0);
  });
  t.is(kept.length, 100_000);
});
