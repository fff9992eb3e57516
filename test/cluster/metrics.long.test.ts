import test from 'ava';
import { startBusyNodes, visit, withoutData } from '../support/cluster/busy-nodes.ts';
import { valueOf } from '../support/api/exposition.ts';
import { judged, Prometheus, scrape, shippedSettings } from '../support/api/prometheus.ts';
import { until } from '../support/time/until.ts';

test('dashboards and alerts have data, and scrapes go on without Redis', async (t) => {
  const { redis, a, b } = await startBusyNodes(t);
  const prometheus = await Prometheus.start(t, shippedSettings([a, b]));

  let empty: readonly string[] = [];
  await until('every panel and alert has data', async () => {
    await Promise.all([a, b].map(visit));
    empty = await withoutData(prometheus);
    return empty.length === 0;
  }).catch((error: Error) => {
    t.deepEqual(empty, []);
    throw error;
  });

  const { text } = await scrape(a);
  t.is(judged(['metrics'], text), '');
  const open = await scrape(a, 'application/openmetrics-text;version=1.0.0');
  t.is(open.type, 'application/openmetrics-text; version=1.0.0; charset=utf-8');
  t.true(open.text.endsWith('\n# EOF\n'));

  // the cluster, as a node sees it
  const { text: far } = await scrape(b);
  t.is(valueOf(far, 'kiln_cluster_nodes', { state: 'ready' }), 2);
  t.is(valueOf(far, 'kiln_cluster_connected'), 1);
  t.is(valueOf(far, 'kiln_relays'), 1);
  t.true((valueOf(text, 'kiln_cluster_claims') ?? 0) >= 1);
  for (const name of ['kiln_redis_command_seconds_count', 'kiln_redis_command_seconds_sum'])
    t.true((valueOf(far, name) ?? 0) > 0, name);
  t.true((valueOf(far, 'kiln_cluster_beats_total', { result: 'taken' }) ?? 0) > 0);

  // a Redis that takes connections and says nothing, then one that is gone
  const untilLost = (what: string): Promise<unknown> =>
    until(what, async () => {
      const { text: alone } = await scrape(a);
      return valueOf(alone, 'kiln_cluster_connected') === 0 && alone;
    });
  const missed = valueOf((await scrape(a)).text, 'kiln_cluster_beats_total', { result: 'missed' }) ?? 0;
  redis.pause();
  await untilLost('the silence of Redis shows');
  await redis.kill();
  await untilLost('its end shows');
  const { text: alone } = await scrape(a);
  t.true((valueOf(alone, 'kiln_cluster_beats_total', { result: 'missed' }) ?? 0) > missed);
  t.true((valueOf(alone, 'kiln_redis_command_failures_total') ?? 0) > 0);
  t.is(valueOf(alone, 'kiln_stream_takeovers_total'), 0);
});
