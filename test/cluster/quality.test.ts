import test from 'ava';
import type { QualitySummary } from '../../src/quality/summary.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { PlayerPage } from '../support/hls/player-page.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { usedRedis, startNode } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const LLHLS = '<SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount><ChunkDuration>0.5</ChunkDuration>';

test('players of two nodes are one row on any node, and the figures end with the stream', async (t) => {
  const redis = await usedRedis(t);
  const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id, { llhls: LLHLS })));
  if (a === undefined || b === undefined || c === undefined) throw new Error('no nodes');
  const publisher = publishPattern(a.rtmpUrl('live'), { size: '160x90', rate: 10, gop: 20, bitrate: '100k' });
  t.teardown(() => publisher.stop());
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  for (const node of [a, b]) {
    const master = node.httpUrl('/app/live/llhls.m3u8');
    await until('the stream is there', async () => (await fetch(master)).status === 200);
    const player = await PlayerPage.open(browser, 'hls', node.httpUrl('/livez'));
    await player.play(master, { cmcd: { version: 2, sessionId: 'a-secret-session', contentId: 'a-secret-film' } });
    await player.plays(2, 60_000);
  }
  const rows = async () => (await c.api<QualitySummary[]>('/v1/cluster/quality?stream=live')).body.response;
  const [row] = await until('both nodes have counted', async () => {
    const all = await rows();
    return (all[0]?.nodes.filter(({ reports }) => reports > 5).length ?? 0) === 2 && all;
  });
  t.deepEqual(row?.nodes.map(({ node }) => node).sort(), ['a', 'b']);
  t.is(
    row?.reports,
    row?.nodes.reduce((sum, { reports }) => sum + reports, 0),
  );
  t.deepEqual(row?.renditions.map(({ rendition }) => rendition).sort(), ['audio_2', 'video_0']);
  t.false(JSON.stringify(row).includes('secret'));
  await publisher.stop();
  await until('the figures have ended', async () => (await rows()).length === 0);
});
