import test from 'ava';
import { QualityReports } from '../../src/quality/quality-reports.ts';
import type { QualitySummary } from '../../src/quality/summary.ts';
import { openApi } from '../support/api/api.ts';

const NAMES = { vhost: 'default', app: 'app', stream: 'live' };

test('what players report is listed by stream, and can be asked for one of them', async (t) => {
  const quality = new QualityReports();
  const { call } = await openApi(t, {}, undefined, { quality });
  const list = async (query = '') =>
    (await call('GET', `/v1/cluster/quality${query}`)).body?.response as QualitySummary[];
  t.deepEqual(await list(), []);
  const source = { ended: false };
  quality.take(
    'br=500,tb=1000,bl=2000,bs,ot=v,sid="secret-session",cid="secret-film"',
    'request',
    source,
    NAMES,
    'video_0',
  );
  quality.take('br=500', 'request', { ended: false }, { ...NAMES, stream: 'another' });
  const rows = await list();
  t.deepEqual(
    rows.map(({ stream }) => stream),
    ['another', 'live'],
  );
  t.like(rows[1], {
    ...NAMES,
    reports: 1,
    starvations: 1,
    droppedFrames: 0,
    bitrateRatio: { count: 1, average: 0.5 },
    renditions: [{ rendition: 'video_0', reports: 1 }],
    nodes: [{ reports: 1 }],
  });
  t.false(JSON.stringify(rows).includes('secret'));
  t.is((await list('?stream=live&app=app&vhost=default')).length, 1);
  for (const query of ['?stream=none', '?app=none', '?vhost=none']) t.deepEqual(await list(query), [], query);
  source.ended = true;
  t.is((await list()).length, 1);
});
