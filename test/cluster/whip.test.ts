import test from 'ava';
import type { Kiln } from '../support/server/kiln.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { PublisherPeer } from '../support/webrtc/publisher-peer.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264, opus } from '../support/webrtc/webrtc-media.ts';

const media = [await h264(), await opus()];
const FRAGMENT = { 'content-type': 'application/trickle-ice-sdpfrag' };

test('a stream that one node got by WHIP plays on another, which changes and ends its session; its name is there once', async (t) => {
  const redis = await usedRedis(t);
  const [one, two] = await Promise.all([
    startNode(t, redis, 'one', { whip: true }),
    startNode(t, redis, 'two', { whip: true }),
  ]);
  const publish = (node: Kiln) => {
    const peer = new PublisherPeer({ media });
    t.teardown(() => peer.close());
    return peer.publish(node.httpUrl('/app/talk?direction=whip'));
  };
  const response = await publish(one);
  await one.liveStream('talk');
  await t.throwsAsync(publish(two), { message: '409: Stream is already exist' });

  await two.liveStream('talk');
  const viewer = new ViewerPeer();
  t.teardown(() => viewer.close());
  await viewer.play(two.httpUrl('/app/talk?direction=whep'));
  await viewer.until(() => viewer.frames().length >= 20 && viewer.packets.audio.length >= 20);

  const location = new URL(response.headers.get('location') ?? '', two.httpUrl('/app/talk'));
  const etag = response.headers.get('etag') ?? '';
  const patch = (match: string, body: string) =>
    fetch(location, { method: 'PATCH', headers: { ...FRAGMENT, 'if-match': match }, body });
  t.is((await patch(etag, 'a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n')).status, 204);
  t.is((await patch('"other"', 'a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n')).status, 412);
  const restart = await patch('*', 'a=ice-ufrag:efgh\r\na=ice-pwd:9876543210987654321098\r\n');
  t.is(restart.status, 200);
  t.not(restart.headers.get('etag'), etag);
  t.is((await fetch(location)).status, 204);
  t.is((await fetch(location, { method: 'DELETE' })).status, 200);
  await until(
    'it is gone everywhere',
    async () => (await one.stream('talk')).status === 404 && (await two.stream('talk')).status === 404,
  );
  t.is((await fetch(location, { method: 'DELETE' })).status, 404);
  const again = await publish(two);
  t.is(again.status, 201);
});
