import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import test from 'ava';
import { Program, publishPattern } from '../support/ffmpeg.ts';
import { alerts, dashboards, GRAFANA, metricsIn } from '../support/grafana.ts';
import { TOKEN, type Kiln } from '../support/kiln.ts';
import { Prometheus } from '../support/prometheus.ts';
import { sharedNodes } from '../support/shared-nodes.ts';
import { until } from '../support/until.ts';
import { ViewerPeer } from '../support/viewer-peer.ts';

const AUTHORIZATION = `Basic ${Buffer.from(TOKEN).toString('base64')}`;

/** What has no data as long as nothing of the kind happens, by dashboard, panel and query. */
const RARE: ReadonlySet<string> = new Set([]);
/** Alerts whose expression has no data before its comparison either. */
const RARE_ALERTS: ReadonlySet<string> = new Set([]);

const shared = sharedNodes(['a', 'b'], { publishers: '<FILE/>' });

/** A scrape of a node. */
async function scrape(node: Kiln, accept: string): Promise<{ type: string | null; text: string }> {
  const answer = await fetch(`http://127.0.0.1:${node.ports.api}/metrics`, {
    headers: { accept, authorization: AUTHORIZATION },
  });
  return { type: answer.headers.get('content-type'), text: await answer.text() };
}

/** The configuration as it is shipped, for these nodes and a hurry. */
function configOf(nodes: readonly Kiln[]): Record<string, string> {
  const shipped = readFileSync(join(GRAFANA, 'prometheus/prometheus.yml'), 'utf8');
  const credentials = Buffer.from(TOKEN).toString('base64');
  const config = shipped
    .replace('scrape_interval: 5s', 'scrape_interval: 1s')
    .replace('evaluation_interval: 15s', 'evaluation_interval: 1s')
    .replace(/basic_auth:\n.*\n.*\n/, `authorization: { type: Basic, credentials: ${credentials} }\n`)
    .replace(/targets: .*/, `targets: [${nodes.map(({ ports }) => `'127.0.0.1:${ports.api}'`).join(', ')}]`);
  return {
    'prometheus.yml': config,
    'kiln.rules.yml': readFileSync(join(GRAFANA, 'prometheus/kiln.rules.yml'), 'utf8'),
  };
}

/** As Grafana sends it with every variable at All. */
function sent(expr: string): string {
  return expr.replaceAll('$__rate_interval', '30s').replaceAll(/\$\w+/g, '.*');
}

test('the dashboards and alerts have data of real publishers and viewers', async (t) => {
  const [a, b] = shared();
  const publisher = publishPattern(a.rtmpUrl('main'), { size: '320x180', rate: 30, gop: 30 });
  t.teardown(() => publisher.stop());
  await a.liveStream('main');
  for (const node of [a, b]) {
    const url = node.httpUrl('/app/main/llhls.m3u8');
    await until('the playlist is there', async () => (await fetch(url)).status === 200);
    const player = new Program('ffmpeg', ['-nostdin', '-v', 'error', '-re', '-i', url, '-map', '0', '-f', 'null', '-']);
    t.teardown(() => player.stop());
    const peer = new ViewerPeer({ audio: false });
    t.teardown(() => peer.close());
    await peer.play(`http://127.0.0.1:${node.ports.http}/app/main?direction=whep`);
  }
  const stranger = new Program('ffmpeg', [
    '-v',
    'quiet',
    '-f',
    'lavfi',
    '-i',
    'testsrc',
    '-t',
    '1',
    '-f',
    'flv',
    a.rtmpUrl('x', 'none'),
  ]);
  t.teardown(() => stranger.stop());
  await until('a viewer is refused', async () => (await fetch(a.httpUrl('/app/none/llhls.m3u8'))).status === 404);
  const recording = await a.api('/v1/vhosts/default/apps/app:startRecord', 'POST', {
    id: 'r',
    stream: { name: 'main' },
  });
  t.is(recording.status, 200);

  const prometheus = await Prometheus.start(t, configOf([a, b]));
  const known = new Set<string>();
  const { text } = await scrape(a, 'text/plain');
  for (const [, name = ''] of text.matchAll(/^# TYPE (\w+)/gm)) known.add(name);

  const queries = [...dashboards()].flatMap(([name, { panels }]) =>
    panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr }) => ({ what: `${name}: ${title}: ${refId}`, expr: sent(expr) })),
    ),
  );
  for (const { what, expr } of queries)
    for (const metric of metricsIn(expr)) t.true(known.has(metric), `${what}: ${metric}`);
  let empty: string[] = [];
  await until('every panel has data', async () => {
    const counts = await Promise.all(queries.map(({ expr }) => prometheus.count(expr)));
    empty = queries.filter((_, index) => counts[index] === 0).map(({ what }) => what);
    return empty.every((what) => RARE.has(what));
  }).catch(() =>
    t.deepEqual(
      empty.filter((what) => !RARE.has(what)),
      [],
    ),
  );
  t.deepEqual(
    [...RARE].filter((what) => !queries.some((query) => query.what === what)),
    [],
  );

  const rules = await until('the rules were evaluated', async () => {
    const found = await prometheus.rules();
    return found.length > 0 && found.every(({ health }) => health !== 'unknown') && found;
  });
  t.deepEqual(
    rules.filter(({ health }) => health !== 'ok').map(({ name, lastError }) => [name, lastError]),
    [],
  );
  t.is(rules.length, alerts().length);
  for (const { alert, expr } of alerts()) {
    for (const metric of metricsIn(expr)) t.true(known.has(metric), `${alert}: ${metric}`);
    const measured = expr.replace(/ (?:[<>]|==) (?:[\d.]+)$/, '');
    const count = await prometheus.count(measured);
    t.is(count > 0, !RARE_ALERTS.has(alert), `${alert}: ${measured}`);
  }
});

test('both formats are right by the tools of Prometheus', async (t) => {
  const [a] = shared();
  const { type, text } = await scrape(a, '*/*');
  t.is(type, 'text/plain; version=0.0.4; charset=utf-8');
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  t.deepEqual([status, stdout, stderr], [0, '', '']);
  const open = await scrape(a, 'application/openmetrics-text;version=1.0.0');
  t.is(open.type, 'application/openmetrics-text; version=1.0.0; charset=utf-8');
  t.true(open.text.endsWith('\n# EOF\n'));
});

test('the rules and the configuration are right by the tools of Prometheus', (t) => {
  for (const [what, file] of [
    [['rules'], 'kiln.rules.yml'],
    [['config', '--syntax-only'], 'prometheus.yml'],
  ] as const) {
    const { status, stderr } = spawnSync('promtool', ['check', ...what, join(GRAFANA, 'prometheus', file)], {
      encoding: 'utf8',
    });
    t.is(status, 0, stderr);
  }
});
