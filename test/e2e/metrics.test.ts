import { join } from 'node:path';
import test from 'ava';
import { alerts, expressions, GRAFANA, metricsIn } from '../support/api/grafana.ts';
import { Kiln } from '../support/server/kiln.ts';
import { describedIn, judged, Prometheus, SCRAPE_TOKEN, scrape, shippedSettings } from '../support/api/prometheus.ts';
import { until } from '../support/time/until.ts';

test('Prometheus scrapes a node with the settings that are shipped, and every panel and alert can be asked for', async (t) => {
  const kiln = await Kiln.start({ env: { KILN_ACCESS_TOKEN: SCRAPE_TOKEN } });
  t.teardown(() => kiln.stop());
  const prometheus = await Prometheus.start(t, shippedSettings([kiln]));
  await until('the node was scraped', async () => (await prometheus.count('up{job="kiln"} == 1')) === 1);

  const { text } = await scrape(kiln);
  const described = describedIn(text);
  for (const { what, expr } of expressions()) {
    for (const metric of metricsIn(expr)) t.true(described.has(metric), `${what}: there is no ${metric}`);
    await t.notThrowsAsync(prometheus.count(expr), what);
  }
  const rules = await prometheus.rules();
  t.is(rules.length, alerts().length);
  t.deepEqual(
    rules.filter(({ health }) => health !== 'ok').map(({ name, lastError }) => [name, lastError]),
    [],
  );

  t.is(judged(['metrics'], text), '');
  t.is(judged(['rules', join(GRAFANA, 'prometheus/kiln.rules.yml')]), '');
  t.is(judged(['config', '--syntax-only', join(GRAFANA, 'prometheus/prometheus.yml')]), '');
});
