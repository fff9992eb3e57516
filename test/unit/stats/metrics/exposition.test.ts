import test from 'ava';
import { Histogram } from '../../../../src/lib/histogram.ts';
import { Exposition } from '../../../../src/stats/metrics/exposition.ts';
import { counter, gauge, histogram, type Family } from '../../../../src/stats/metrics/family.ts';

const seconds = new Histogram([0.1, 1]);
for (const value of [0.1, 0.5, 3, 4]) seconds.add(value);
const labels = { vhost: 'default' };
const FAMILIES = [
  counter('kiln_things_total', 'Things.', () => [{ sharedLabels: labels, labels: { kind: 'a "b"\\\n' }, value: 2 }]),
  gauge('kiln_level', 'The level.', async () => [{ value: 0.5 }]),
  histogram('kiln_wait_seconds', 'Waits.', () => [[{ kind: 'x' }, seconds]]),
];
const WAITS = `kiln_wait_seconds_bucket{le="0.1",kind="x"} 1
kiln_wait_seconds_bucket{le="1",kind="x"} 2
kiln_wait_seconds_bucket{le="+Inf",kind="x"} 4
kiln_wait_seconds_sum{kind="x"} 7.6
kiln_wait_seconds_count{kind="x"} 4`;

test("Prometheus' text format", async (t) => {
  const { contentType, body } = await new Exposition(FAMILIES).scrape(undefined);
  t.is(contentType, 'text/plain; version=0.0.4; charset=utf-8');
  t.is(
    body.toString(),
    String.raw`# HELP kiln_things_total Things.
# TYPE kiln_things_total counter
kiln_things_total{kind="a \"b\"\\\n",vhost="default"} 2
# HELP kiln_level The level.
# TYPE kiln_level gauge
kiln_level 0.5
# HELP kiln_wait_seconds Waits.
# TYPE kiln_wait_seconds histogram
${WAITS}
`,
  );
});

test('metrics are OpenMetrics for a scraper that prefers it, whatever was requested before', async (t) => {
  const exposition = new Exposition(FAMILIES);
  await exposition.scrape(undefined);
  const { contentType, body } = await exposition.scrape(
    'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
  );
  t.is(contentType, 'application/openmetrics-text; version=1.0.0; charset=utf-8');
  t.true(body.toString().startsWith('# HELP kiln_things Things.\n# TYPE kiln_things counter\nkiln_things_total{'));
  t.true(body.toString().endsWith('kiln_wait_seconds_count{kind="x"} 4\n# EOF\n'));
});

test('metrics are text for any other scraper', async (t) => {
  const exposition = new Exposition(FAMILIES);
  for (const accept of [
    '',
    '*/*',
    'text/html',
    'text/plain',
    'text/plain;q=1,application/openmetrics-text;q=0.9',
    'application/openmetrics-text;version=0.0.1',
    'application/openmetrics-text;q=0',
    'application/openmetrics-text;q=nonsense',
  ]) {
    t.regex((await exposition.scrape(accept)).contentType, /^text\/plain/, accept);
  }
});

/** A family whose values take some time to read. */
function slow(name: string): Family {
  return gauge(name, 'Slow.', () => {
    const until = performance.now() + 3;
    while (performance.now() < until);
    return 1;
  });
}

test('a scrape that takes long lets the event loop turn, and simultaneous ones get the same', async (t) => {
  const families = ['kiln_a', 'kiln_b', 'kiln_c', 'kiln_d'].map(slow);
  const exposition = new Exposition(families);
  let turns = 0;
  const count = () => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const first = exposition.scrape(undefined);
  t.is(exposition.scrape('text/plain'), first);
  await first;
  clearImmediate(next);
  t.true(turns >= families.length, `${turns}`);
  const second = exposition.scrape(undefined);
  t.not(second, first);
  // an unfinished scrape would go on in the next test of the process, which may have virtual time
  await second;
});

test('two metric families of one name are an error', (t) => {
  const twice = [gauge('kiln_level', 'A.', () => 1), counter('kiln_level_total', 'B.', () => 1)];
  t.throws(() => new Exposition(twice), { message: 'there are two metric families of the name kiln_level' });
});

test('values that are no finite numbers, and text with marks of the format', async (t) => {
  const level = gauge('kiln_level', 'The \\ level,\nin m.', () =>
    [Number.NaN, Infinity, -Infinity, 1e-7, 1e21, -0.5].map((value, at) => ({ labels: { at: `${at}` }, value })),
  );
  t.is(
    (await new Exposition([level]).scrape(undefined)).body.toString(),
    String.raw`# HELP kiln_level The \\ level,\nin m.
# TYPE kiln_level gauge
kiln_level{at="0"} NaN
kiln_level{at="1"} +Inf
kiln_level{at="2"} -Inf
kiln_level{at="3"} 1e-7
kiln_level{at="4"} 1e+21
kiln_level{at="5"} -0.5
`,
  );
});

test('a body that is put together of many pieces', async (t) => {
  const names = Array.from({ length: 2000 }, (_, at) => `ström ${at}`);
  const many = gauge('kiln_level', 'Level.', () => names.map((stream, value) => ({ labels: { stream }, value })));
  const { body } = await new Exposition([many]).scrape(undefined);
  t.deepEqual(
    body.toString().trimEnd().split('\n').slice(2),
    names.map((stream, value) => `kiln_level{stream="${stream}"} ${value}`),
  );
});
