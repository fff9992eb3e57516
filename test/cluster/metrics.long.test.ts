import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import test from 'ava';
import { valueOf } from '../support/exposition.ts';
import { expressions, unfiltered } from '../support/grafana.ts';
import type { Kiln } from '../support/kiln.ts';
import { BYPASS, ladderXml } from '../support/ladder-config.ts';
import { createMultiplex, sourceOf } from '../support/multiplex-api.ts';
import { startNode, untilStates, usedRedis } from '../support/nodes.ts';
import { PartViewer } from '../support/part-viewer.ts';
import { PictureClient } from '../support/picture-client.ts';
import { freePorts } from '../support/ports.ts';
import { judged, Prometheus, SCRAPE_TOKEN, scrape, shippedSettings } from '../support/prometheus.ts';
import { RtmpClient } from '../support/rtmp-client.ts';
import { until } from '../support/until.ts';
import { ViewerPeer } from '../support/viewer-peer.ts';

const APP = '/v1/vhosts/default/apps/app';
const SMALL =
  '<Video><Name>small</Name><Codec>h264</Codec><Bitrate>100000</Bitrate><Width>64</Width><Height>48</Height></Video>';

/** What has no series until something rare happens: a malformed packet, an answer of 5xx. */
const RARE = /kiln_faults_total|status=~"5/;

/** Publishers, viewers, an encoder, tasks, refusals and calls between nodes: a little of everything that is measured. */
async function busy(t: Parameters<typeof usedRedis>[0], a: Kiln, b: Kiln): Promise<void> {
  const publisher = await PictureClient.publish(a, 'main');
  t.teardown(() => publisher.close());
  await a.liveStream('main');
  const viewers = [a, b].map((node) => PartViewer.start(node.httpUrl('/app/main/llhls.m3u8')));
  for (const viewer of await Promise.all(viewers)) t.teardown(() => viewer.close());
  const peer = new ViewerPeer({ audio: false });
  t.teardown(() => peer.close());
  await peer.play(b.httpUrl('/app/main?direction=whep'));

  await RtmpClient.publish('stranger', { port: a.ports.rtmp, app: 'none' }).then(
    (client) => client.close(),
    () => {},
  );
  await until('a viewer is refused', async () => (await fetch(a.httpUrl('/app/none/llhls.m3u8'))).status === 404);
  const receiver = createSocket('udp4').bind(0, '127.0.0.1');
  t.teardown(() => receiver.close());
  await once(receiver, 'listening');
  const stream = { name: 'main' };
  const start = async (action: string, body: object): Promise<void> => {
    const { status } = await a.api(`${APP}:${action}`, 'POST', body);
    if (status !== 200) throw new Error(`${action} was answered with ${status}`);
  };
  const [nobody = 0] = freePorts(1);
  await start('startRecord', { id: 'r', stream });
  await start('startPush', { id: 'p', stream, protocol: 'mpegts', url: `udp://127.0.0.1:${receiver.address().port}` });
  await start('startPush', {
    id: 'q',
    stream,
    protocol: 'rtmp',
    url: `rtmp://127.0.0.1:${nobody}/app`,
    streamKey: 'x',
  });
  await createMultiplex(a, 'channel', [sourceOf('nothing', ['source', 'picture'])]);
}

test('dashboards and alerts have data, and scrapes go on without Redis', async (t) => {
  const redis = await usedRedis(t);
  const options = {
    env: { KILN_ACCESS_TOKEN: SCRAPE_TOKEN },
    providers: '<Multiplex/>',
    publishers: '<FILE/><Push/>',
    application: ladderXml([BYPASS, SMALL]),
  };
  const [a, b] = await Promise.all([startNode(t, redis, 'a', options), startNode(t, redis, 'b', options)]);
  await untilStates(a, { a: 'ready', b: 'ready' });
  await busy(t, a, b);
  const prometheus = await Prometheus.start(t, shippedSettings([a, b]));

  const common = expressions().filter(({ expr }) => !RARE.test(expr));
  let empty: readonly string[] = [];
  await until('every panel and alert has data', async () => {
    const counts = await Promise.all(common.map(({ expr }) => prometheus.count(unfiltered(expr))));
    empty = common.filter((_, at) => counts[at] === 0).map(({ what }) => what);
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
