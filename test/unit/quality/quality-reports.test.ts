import test from 'ava';
import { QualityReports } from '../../../src/quality/quality-reports.ts';
import { joinQuality, qualitySummaries } from '../../../src/quality/summary.ts';
import { qualityFamilies } from '../../../src/stats/metrics/quality.ts';
import { Exposition } from '../../../src/stats/metrics/exposition.ts';
import { documented, valueOf } from '../../support/api/exposition.ts';

const NAMES = { vhost: 'default', app: 'app', stream: 'stream' };
const LABELS = { vhost: 'default', application: 'app', stream: 'stream' };

test('reports are summed by stream and rendition', (t) => {
  const quality = new QualityReports();
  const source = { ended: false };
  const take = (text: string, rendition?: string): void => quality.take(text, 'request', source, NAMES, rendition);
  take('ot=m,sid="a",su');
  take('br=500,tb=(2000),bl=4000,ot=v,sid="a",msd=800,ltc=3100,dfa=2', 'video_0');
  take('br=2000,tb=2000,bl=300,bs,bsd=(1500),ot=v,pr=1.05,sid="a",dfa=7', 'video_1');
  take('br=2000,tb=2000,ot=v,sid="b",dfa=100', 'video_1');
  const [row, ...others] = qualitySummaries(quality.streams, 'one');
  t.deepEqual(others, []);
  t.like(row, { ...NAMES, reports: 4, starvations: 1, droppedFrames: 5 });
  t.like(row?.startupSeconds, { count: 1, average: 0.8 });
  t.like(row?.starvationSeconds, { count: 1, sum: 1.5 });
  t.like(row?.bitrateRatio, { count: 3, sum: 2.25 });
  t.like(row?.latencySeconds, { count: 1, sum: 3.1 });
  t.like(row?.playbackRate, { count: 3, sum: 3.05 });
  t.like(row?.bufferSeconds, { count: 2, sum: 4.3 });
  t.deepEqual(
    row?.renditions.map(({ rendition, reports, starvations }) => [rendition, reports, starvations]),
    [
      ['video_0', 1, 0],
      ['video_1', 2, 1],
    ],
  );
  t.false(JSON.stringify(row).includes('"a"'), 'no session leaves the node');
});

test('a player in event mode starves when its state becomes rebuffering', (t) => {
  const quality = new QualityReports();
  const source = { ended: false };
  for (const text of ['e=ps,sta=r', 'e=t,sta=r', 'e=ps,sta=p']) quality.take(text, 'event', source, NAMES);
  t.is(quality.streams[0]?.all.starvations, 1);
  t.like(quality.counts, { event: 3, request: 0 });
});

test('figures end with what plays the stream, and go on while another does', (t) => {
  const quality = new QualityReports();
  const [first, second] = [{ ended: false }, { ended: false }];
  quality.take('br=1', 'request', first, NAMES);
  quality.take('br=1', 'request', second, NAMES);
  first.ended = true;
  t.is(quality.streams[0]?.all.reports, 2);
  second.ended = true;
  t.deepEqual(quality.streams, []);
  quality.take('br=1', 'request', { ended: false }, NAMES);
  t.is(quality.streams[0]?.all.reports, 1);
});

test('streams, renditions and malformed reports are bounded', (t) => {
  const quality = new QualityReports(2);
  const sources = ['a', 'b', 'c'].map((stream) => ({ stream, ended: false }));
  for (const source of sources) quality.take('br=1', 'request', source, { ...NAMES, stream: source.stream });
  t.is(quality.streams.length, 2);
  t.like(quality.counts, { request: 2, unlisted: 1 });
  const source = sources[0] ?? { ended: true };
  for (let n = 0; n < 100; n++) quality.take('br=1', 'request', source, { ...NAMES, stream: 'a' }, `video_${n}`);
  t.is(quality.streams[0]?.renditions.size, 32);
  quality.take('br=', 'request', source, NAMES);
  t.is(quality.counts.malformed, 1);
  source.ended = true;
  quality.take('br=1', 'request', { ended: false }, { ...NAMES, stream: 'c' });
  t.deepEqual(
    quality.streams.map(({ names }) => names.stream),
    ['b', 'c'],
  );
});

test('rows of several nodes are joined to one, with the figures of each', (t) => {
  const rows = ['one', 'two'].flatMap((node, at) => {
    const quality = new QualityReports();
    const source = { ended: false };
    for (let n = 0; n <= at; n++) quality.take('br=100,tb=200,bl=900,bs,ltc=2000', 'request', source, NAMES, 'video_1');
    quality.take('sid="x"', 'request', { ended: false }, { ...NAMES, stream: node });
    return qualitySummaries(quality.streams, node, { stream: 'stream' });
  });
  const [row, ...others] = joinQuality(rows);
  t.deepEqual(others, []);
  t.like(row, { reports: 3, starvations: 3, renditions: [{ rendition: 'video_1', reports: 3 }] });
  t.like(row?.latencySeconds, { count: 3, sum: 6, average: 2 });
  t.deepEqual(
    row?.nodes.map(({ node, reports }) => [node, reports]),
    [
      ['one', 1],
      ['two', 2],
    ],
  );
  const odd = structuredClone(rows[1] as (typeof rows)[number]);
  (odd.latencySeconds as { bounds: number[] }).bounds = [1];
  t.is(joinQuality([rows[0] as (typeof rows)[number], odd])[0]?.latencySeconds?.count, 1, 'a node of another version');
});

test('receptions of WebRTC viewers are summed beside reports, by rendition', async (t) => {
  const quality = new QualityReports();
  const source = { ended: false };
  quality.takeReception({ lossRatio: 0.03, roundTripSeconds: 0.08 }, source, NAMES, 'video_1');
  quality.takeReception({ lossRatio: 0, roundTripSeconds: 0.02 }, source, NAMES);
  const [row] = qualitySummaries(quality.streams, 'one');
  t.like(row, { reports: 0, lossRatio: { count: 2, average: 0.015 }, roundTripSeconds: { count: 2, average: 0.05 } });
  t.like(row?.renditions, [{ rendition: 'video_1', lossRatio: { count: 1, sum: 0.03 } }]);
  const [joined] = joinQuality([row, row].flatMap((one) => one ?? []));
  t.like(joined, { lossRatio: { count: 4, average: 0.015 } });
  const body = documented((await new Exposition(qualityFamilies(quality)).scrape(undefined)).body.toString());
  t.is(valueOf(body, 'kiln_player_packet_loss_ratio_count', LABELS), 2);
  t.is(valueOf(body, 'kiln_player_round_trip_seconds_sum', LABELS), 0.1);
  source.ended = true;
  t.deepEqual(quality.streams, []);
});

test('percentiles are estimated within their bucket', (t) => {
  const quality = new QualityReports();
  const source = { ended: false };
  for (let n = 0; n < 100; n++) quality.take(`ltc=${n < 50 ? 1500 : 500_000}`, 'request', source, NAMES);
  const latency = qualitySummaries(quality.streams, 'one')[0]?.latencySeconds;
  t.is(latency?.p50, 2);
  t.is(latency?.p95, 90, 'the greatest bound');
});

test('metrics have a series for each stream and rendition, and distributions for those that have values', async (t) => {
  const quality = new QualityReports();
  const source = { ended: false };
  quality.take('br=500,tb=1000,bs,ot=v', 'request', source, NAMES, 'video_1');
  quality.take('br', 'request', source, NAMES);
  quality.take('br="', 'request', source, NAMES);
  const scrape = async () =>
    documented((await new Exposition(qualityFamilies(quality)).scrape(undefined)).body.toString());
  const body = await scrape();
  t.is(valueOf(body, 'kiln_player_reports_received_total', { result: 'request' }), 2);
  t.is(valueOf(body, 'kiln_player_reports_received_total', { result: 'malformed' }), 1);
  t.is(valueOf(body, 'kiln_player_reports_total', LABELS), 2);
  t.is(valueOf(body, 'kiln_player_starvations_total', LABELS), 1);
  t.is(valueOf(body, 'kiln_player_rendition_reports_total', { ...LABELS, rendition: 'video_1' }), 1);
  t.is(valueOf(body, 'kiln_player_bitrate_ratio_sum', LABELS), 0.5);
  t.is(valueOf(body, 'kiln_player_latency_seconds_count', LABELS), undefined);
  source.ended = true;
  t.is(valueOf(await scrape(), 'kiln_player_reports_total', LABELS), undefined);
});
