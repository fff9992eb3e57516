import test from 'ava';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';

const STREAM = 'vhosts/default/apps/app/streams/live';

interface SessionStatistics {
  readonly totalBytesOut: number;
  readonly maxThroughputOut: number;
}

test('players of a published stream are listed and measured; one that is kicked is gone, the others play on', async (t) => {
  const kiln = await Kiln.start();
  t.teardown(() => kiln.stop());
  const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '320x180' });
  t.teardown(() => publisher.stop());
  await kiln.liveStream('live');
  const list = async () => (await kiln.api<string[]>(`/v1/${STREAM}/sessions`)).body.response;
  const statistics = async (id: string) =>
    (await kiln.api<SessionStatistics>(`/v1/stats/current/${STREAM}/sessions/${id}`)).body.response;

  const kicked = new ViewerPeer({ audio: false });
  const staying = new ViewerPeer({ audio: false });
  const returning = new ViewerPeer({ audio: false });
  t.teardown(() => [kicked, staying, returning].forEach((peer) => peer.close()));
  await kicked.play(kiln.httpUrl('/app/live?direction=whep&session=kicked'));
  await staying.play(kiln.httpUrl('/app/live?direction=whep&session=staying'));
  const master = await until('LL-HLS has started', async () => {
    const answer = await fetch(kiln.httpUrl('/app/live/llhls.m3u8?session=player'));
    return answer.status === 200 && answer.text();
  });
  const chunklist = urisOf(master, kiln.httpUrl('/app/live/llhls.m3u8')).at(-1) ?? '';
  t.is((await fetch(chunklist)).status, 200);
  t.deepEqual((await list()).toSorted(), ['kicked', 'player', 'staying']);

  await kicked.until(() => kicked.frames().length > 30);
  const received = kicked.packets.video.reduce((sum, { payload }) => sum + payload.length, 0);
  await until('what was received is measured', async () => {
    const { maxThroughputOut, totalBytesOut } = await statistics('kicked');
    return maxThroughputOut > 0 && totalBytesOut >= received;
  });
  // it may have been silent for too long meanwhile
  t.is((await fetch(chunklist)).status, 200);
  t.true((await statistics('player')).totalBytesOut > 0);

  for (const id of ['kicked', 'player']) t.is((await kiln.api(`/v1/${STREAM}/sessions/${id}`, 'DELETE')).status, 200);
  t.is((await fetch(chunklist)).status, 401);
  t.deepEqual(await list(), ['staying']);
  t.is((await kiln.api(`/v1/stats/current/${STREAM}/sessions/kicked`)).status, 404);
  await kicked.until(() => ['closed', 'disconnected', 'failed'].includes(kicked.state));
  const seen = staying.frames().length;
  await staying.until(() => staying.frames().length > seen + 10);
  await t.throwsAsync(returning.play(kiln.httpUrl('/app/live?session=kicked')), { message: /^403/ });
});
