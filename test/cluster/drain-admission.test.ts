import test from 'ava';
import { Program, patternArguments } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { freePorts } from '../support/network/ports.ts';
import { PublisherPeer } from '../support/webrtc/publisher-peer.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { SrtCaller } from '../support/srt/caller.ts';
import { until } from '../support/time/until.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';

const STREAMS = '/v1/vhosts/default/apps/app/streams';
const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '100k' };

/** Publishes to a node's UDP port, which is free of it when the test is over. */
function sendTs(t: import('ava').ExecutionContext, port: number): void {
  const sender = new Program('ffmpeg', [
    ...patternArguments(PICTURE),
    '-f',
    'mpegts',
    `udp://127.0.0.1:${port}?pkt_size=1316`,
  ]);
  t.teardown(() => sender.stop());
}

test('a node that is drained admits no client of any protocol, says so to those that ask, and admits all again when it is not', async (t) => {
  const redis = await usedRedis(t);
  const [port = 0] = freePorts(1);
  const node = await startNode(t, redis, 'a', {
    srt: {},
    whip: true,
    ovt: true,
    bindProviders: `<MPEGTS><Port>${port}</Port></MPEGTS>`,
    providers: `<RTSPPull/><MPEGTS><StreamMap><Stream><Name>ts</Name><Port>${port}/udp</Port></Stream></StreamMap></MPEGTS>`,
  });
  const origin = await Kiln.start({ ovt: true });
  t.teardown(() => origin.stop());
  const source = new Program('ffmpeg', [...patternArguments(PICTURE), '-f', 'flv', origin.rtmpUrl('far')]);
  t.teardown(() => source.stop());
  await origin.liveStream('far');
  const picture = await h264({ width: 160, height: 90 });
  const srt = new SrtCaller(t);
  const whip = async (): Promise<void> => {
    const peer = new PublisherPeer({ media: [picture] });
    t.teardown(() => peer.close());
    await peer.publish(node.httpUrl('/app/whip?direction=whip'));
  };
  const call = async () => (await srt.call(node.ports.srt as number, { streamId: 'default/app/srt' })).refused;
  const pull = async () => (await node.api(STREAMS, 'POST', { name: 'pulled', urls: [origin.ovtUrl('far')] })).status;

  t.is((await node.api('/v1/cluster/nodes/a:drain', 'POST')).status, 200);
  await until('it is drained', async () => (await fetch(`http://127.0.0.1:${node.ports.api}/readyz`)).status === 503);
  await t.throwsAsync(RtmpClient.publish('rtmp', { port: node.ports.rtmp, app: 'app' }), { message: /draining/ });
  t.is(await call(), 1503);
  await t.throwsAsync(whip(), { message: /^503: .*draining/ });
  t.is(await pull(), 503);
  sendTs(t, port);
  await until('the log tells of MPEG-TS', () => /MPEG-TS.*draining|draining.*MPEG-TS/.test(node.log));
  t.deepEqual((await node.api<string[]>(STREAMS)).body.response, []);

  t.is((await node.api('/v1/cluster/nodes/a:undrain', 'POST')).status, 200);
  await until(
    'it takes streams',
    async () => (await fetch(`http://127.0.0.1:${node.ports.api}/readyz`)).status === 200,
  );
  await node.liveStream('ts');
  t.is(await call(), 0);
  await whip();
  t.is(await pull(), 201);
  await Promise.all(['whip', 'pulled'].map((name) => node.liveStream(name)));
});
