import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import { controlServer, json } from '../access/control-server.ts';
import { expressions, unfiltered, type Expression } from '../api/grafana.ts';
import type { Kiln } from '../server/kiln.ts';
import { BYPASS, ladderXml } from '../media/ladder-config.ts';
import { createMultiplex, sourceOf } from '../channels/multiplex-api.ts';
import { startNode, untilStates, usedRedis } from '../server/nodes.ts';
import { PartViewer } from '../hls/part-viewer.ts';
import { PictureClient } from '../rtmp/picture-client.ts';
import { freePorts } from '../network/ports.ts';
import { SCRAPE_TOKEN, type Prometheus } from '../api/prometheus.ts';
import type { RedisServer } from '../redis/redis.ts';
import { RtmpClient } from '../rtmp/rtmp-client.ts';
import { until } from '../time/until.ts';
import { ViewerPeer } from '../webrtc/viewer-peer.ts';

const APP = '/v1/vhosts/default/apps/app';
const SMALL =
  '<Video><Name>small</Name><Codec>h264</Codec><Bitrate>100000</Bitrate><Width>64</Width><Height>48</Height></Video>';

/** Streams that are there: what is published, and what comes back of it over SRT. */
export const BUSY_STREAMS = 2;

/** What has no series until something rare happens: a malformed packet, an answer of 5xx. */
const RARE = /kiln_faults_total|status=~"5/;

/**
 * Two nodes of a cluster on which a little of everything goes on that is measured: a publisher, viewers, an encoder,
 * tasks, refusals, calls to a control server and between the nodes.
 * @param applications `Application` elements besides that in which all this is
 */
export async function startBusyNodes(
  t: Pick<ExecutionContext, 'teardown'>,
  applications = '',
): Promise<{ redis: RedisServer; a: Kiln; b: Kiln }> {
  const redis = await usedRedis(t);
  const control = await controlServer(t, json({ allowed: true }));
  const options = {
    vhost:
      `<AdmissionWebhooks><ControlServerUrl>${control.url}</ControlServerUrl><SecretKey>x</SecretKey>` +
      '<Timeout>20000</Timeout><Enables><Providers>rtmp</Providers></Enables></AdmissionWebhooks>',
    env: { KILN_ACCESS_TOKEN: SCRAPE_TOKEN },
    providers: '<Multiplex/>',
    srt: {},
    publishers: '<FILE/><Push/>',
    application: ladderXml([BYPASS, SMALL]),
    applications,
  };
  const [a, b] = await Promise.all([startNode(t, redis, 'a', options), startNode(t, redis, 'b', options)]);
  await untilStates(a, { a: 'ready', b: 'ready' });

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
  // by which a stream comes in over SRT, and goes out
  const url = `srt://127.0.0.1:${a.ports.srt}?streamid=default/app/copy`;
  await start('startPush', { id: 's', stream, protocol: 'srt', url });
  await createMultiplex(a, 'channel', [sourceOf('nothing', ['source', 'picture'])]);
  return { redis, a, b };
}

/** A publisher, a player and a call of the management API come to a node: panels show the rates of the last half minute. */
export async function visit(node: Kiln): Promise<void> {
  const publisher = await RtmpClient.publish(`visitor of ${node.ports.rtmp}`, { port: node.ports.rtmp });
  publisher.close();
  const viewer = await PartViewer.start(node.httpUrl('/app/main/llhls.m3u8'));
  await until('the first part', () => viewer.parts > 0);
  viewer.close();
  await node.api('/v1/vhosts');
}

/** Names of the panels and alerts for which there is no number, besides those of rare events. */
export async function withoutData(prometheus: Prometheus): Promise<string[]> {
  const common: Expression[] = expressions().filter(({ expr }) => !RARE.test(expr));
  const values = await Promise.all(common.map(({ expr }) => prometheus.values(unfiltered(expr))));
  // a quantile of nothing is no number
  return common.filter((_, at) => !values[at]?.some(Number.isFinite)).map(({ what }) => what);
}
