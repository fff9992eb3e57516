import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { TOKEN, type Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import type { RedisServer } from '../support/redis/redis.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { PublisherPeer } from '../support/webrtc/publisher-peer.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';

const LONG = { nodeXml: '<DrainTimeout>3600000</DrainTimeout>' };
const publish = (node: Kiln, key: string): Promise<PictureClient> => PictureClient.publish(node, key);
const readyz = async (node: Kiln): Promise<number> => (await fetch(`http://127.0.0.1:${node.ports.api}/readyz`)).status;

/** A node that drains before it stops, with a stream that stays. */
async function draining(t: ExecutionContext, redis: RedisServer) {
  const node = await startNode(t, redis, 'a', LONG);
  const stream = await publish(node, 'stays');
  node.signal('SIGTERM');
  await until('it is not ready', async () => (await readyz(node)) === 503);
  return { node, stream };
}

test.serial('a node that is to stop waits for its streams to leave, and takes no new ones', async (t) => {
  const redis = await usedRedis(t);
  const other = await startNode(t, redis, 'b');
  const { node, stream } = await draining(t, redis);
  await untilStates(other, { a: 'draining', b: 'ready' });
  await t.throwsAsync(publish(node, 'new'), { message: /draining/ });
  t.is((await other.api('/v1/cluster/nodes/a:undrain', 'POST')).status, 200, 'which changes nothing: it is to stop');
  const { uptime = 0 } = (await nodesOf(other)).get('a') ?? {};
  await until('it was heard of since', async () => ((await nodesOf(other)).get('a')?.uptime ?? 0) > uptime + 2000);
  await untilStates(other, { a: 'draining', b: 'ready' });
  t.is(await readyz(node), 503);
  await t.throwsAsync(publish(node, 'new'), { message: /draining/ });
  t.true(node.running && !stream.ended);
  stream.close();
  t.is(await node.exited(), 0);
  await untilStates(other, { b: 'ready' });
  t.notRegex(node.log, /"level":"(error|fatal)"/);
});

long('a WebRTC publisher or viewer stays on a draining node until that stops', async (t) => {
  const node = await startNode(t, await usedRedis(t), 'a', { ...LONG, whip: true, ownGroup: true });
  const peer = new PublisherPeer({ media: [await h264()] });
  t.teardown(() => peer.close());
  const response = await peer.publish(node.httpUrl('/app/cam?direction=whip'));
  await node.liveStream('cam');
  const viewer = new ViewerPeer();
  t.teardown(() => viewer.close());
  await viewer.play(node.httpUrl('/app/cam?direction=whep'));
  await viewer.until(() => viewer.frames().length > 5);
  node.signalGroup('SIGTERM');
  await until('it is not ready', async () => (await readyz(node)) === 503);
  const seen = viewer.frames().length;
  await until('pictures go on', () => viewer.frames().length > seen + 60);
  t.deepEqual([peer.state, viewer.state], ['connected', 'connected']);
  const session = new URL(response.headers.get('location') ?? '', node.httpUrl('/app/cam'));
  t.is((await fetch(session, { method: 'DELETE' })).status, 200);
  t.is(await node.exited(), 0);
  t.notRegex(node.log, /worker died/);
});

test.serial('streams that stay are ended when DrainTimeout is over', async (t) => {
  const node = await startNode(t, await usedRedis(t), 'a', { nodeXml: '<DrainTimeout>1500</DrainTimeout>' });
  const stream = await publish(node, 'stays');
  node.signal('SIGTERM');
  t.is(await node.exited(), 0);
  await stream.client.ended();
  t.regex(node.log, /"atMostMs":1500,"msg":"draining, then stopping/);
});

long('with a DrainTimeout of 0 a node stops as one does that is alone, and so it does on Ctrl-C', async (t) => {
  const redis = await usedRedis(t);
  for (const [signal, options] of [
    ['SIGTERM', { nodeXml: '<DrainTimeout>0</DrainTimeout>' }],
    ['SIGINT', LONG],
  ] as const) {
    const node = await startNode(t, redis, 'a', options);
    const stream = await publish(node, 'stays');
    node.signal(signal);
    t.is(await node.exited(), 0);
    await stream.client.ended();
  }
});

test.serial('a second signal stops a node that drains', async (t) => {
  const { node, stream } = await draining(t, await usedRedis(t));
  await until('it stops', () => {
    // one that comes with the first is the same for the server
    node.signal('SIGTERM');
    return node.log.includes('another signal stops at once');
  });
  t.is(await node.exited(), 0);
  await stream.client.ended();
});

long('a node drains without Redis, too', async (t) => {
  const redis = await usedRedis(t);
  const node = await startNode(t, redis, 'a', LONG);
  const stream = await publish(node, 'stays');
  const other = await startNode(t, redis, 'b');
  await redis.kill();
  node.signal('SIGTERM');
  await until('it is not ready', async () => (await readyz(node)) === 503);
  await t.throwsAsync(publish(node, 'new'), { message: /draining/ });
  await redis.run();
  await untilStates(other, { a: 'draining', b: 'ready' });
  stream.close();
  t.is(await node.exited(), 0);
});

long(
  'a node that is drained by the API alone goes on, and one that starts again is not drained any more',
  async (t) => {
    const redis = await usedRedis(t);
    const node = await startNode(t, redis, 'a', LONG);
    t.is((await node.api('/v1/cluster/nodes/a:drain', 'POST')).status, 200);
    await until('it is not ready', async () => (await readyz(node)) === 503);
    t.is((await node.api('/v1/cluster/nodes/a:undrain', 'POST')).status, 200);
    await until('it is ready', async () => (await readyz(node)) === 200);
    t.is((await node.api('/v1/cluster/nodes/a:drain', 'POST')).status, 200);
    await until('it is not ready', async () => (await readyz(node)) === 503);
    await node.restart();
    t.is(await readyz(node), 200);
  },
);

test.serial('deploy/drain drains the node beside it, and says why when it cannot', async (t) => {
  const node = await startNode(t, await usedRedis(t), 'a', LONG);
  const drain = (token: string) =>
    promisify(execFile)(join(import.meta.dirname, '../../deploy/drain'), ['0'], {
      env: { ...process.env, KILN_NODE_ID: 'a', KILN_API_PORT: String(node.ports.api), KILN_ACCESS_TOKEN: token },
    });
  await t.throwsAsync(drain('wrong'), { message: /is answered 401/ });
  t.is(await readyz(node), 200);
  await drain(TOKEN);
  await until('it is not ready', async () => (await readyz(node)) === 503);
  t.true(node.running);
});
