import test, { type ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { Registry } from '../../src/core/registry.ts';
import { VIDEO_TIMEBASE } from '../../src/core/timebase.ts';
import type { Track } from '../../src/core/track.ts';
import { ThumbnailPublisher } from '../../src/publishers/thumbnail/index.ts';
import { createVhost } from '../support/api/api.ts';
import { inCluster } from '../support/cluster/in-cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';

const IMAGE: Track = {
  id: 0,
  name: 'image',
  type: 'image',
  codec: 'PNG',
  timebase: VIDEO_TIMEBASE,
  bypass: false,
  width: 320,
  height: 180,
  bitrate: 0,
  framerate: 1,
  keyFrameInterval: 0,
};
const picture = (text: string) => ({ track: IMAGE, dts: 0, pts: 0, duration: 0, key: true, data: Buffer.from(text) });

async function open(t: ExecutionContext, redis: RedisServer, id: string, maxConnection: number) {
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['localhost'] },
    applications: [{ name: 'app', type: 'live', publishers: { thumbnail: { maxConnection } } }],
  });
  const { access, directory, calls, asked, goLive, knows } = await inCluster(t, redis, id, registry);
  const publisher = new ThumbnailPublisher({ registry, access, directory, calls });
  const app = Fastify();
  await app.register(publisher.routes);
  t.teardown(async () => {
    publisher.close();
    await app.close();
  });
  const application = registry.vhost('default').application('app');
  const get = (url: string, method: 'GET' | 'HEAD' = 'GET') => app.inject({ method, url });
  return {
    application,
    asked,
    get,
    goLive: (name: string) => goLive(application, name, [IMAGE]),
    knows: (name: string) => knows(application, name),
  };
}

/** One with a picture, and one that serves it. */
async function openTwo(t: ExecutionContext, { maxConnection = 0 } = {}) {
  const redis = await RedisServer.start(t);
  const [owner, other] = (await Promise.all(['a', 'b'].map((id) => open(t, redis, id, maxConnection)))) as [Node, Node];
  const output = await owner.goLive('stream');
  output.write(picture('first'));
  await other.knows('stream');
  return { owner, other, output };
}

type Node = Awaited<ReturnType<typeof open>>;

test('requests for a remote thumbnail at about the same time share one call, and the next image comes soon', async (t) => {
  const { owner, other, output } = await openTwo(t);
  const answers = await Promise.all(Array.from({ length: 30 }, () => other.get('/app/stream/thumb.png')));
  for (const { statusCode, body, headers } of answers) {
    t.deepEqual(
      [statusCode, body, headers['content-type'], headers['cache-control']],
      [200, 'first', 'image/png', 'no-cache, no-store'],
    );
  }
  t.is(owner.asked.length, 1);
  output.write(picture('second'));
  await until('the second', async () => (await other.get('/app/stream/thumb.png')).body === 'second');
  t.is(owner.asked.length, 2);
  t.like(await other.get('/app/stream/thumb.jpg'), { statusCode: 404, body: 'There is no thumbnail image' });
  t.is(owner.asked.length, 3);
  t.like(await other.get('/app/stream/thumb.gif'), { statusCode: 404, body: 'Unsupported file extension' });
  t.is(owner.asked.length, 3, 'which needs nobody else');
});

test('a remote thumbnail is counted where it is served, with the bytes that were sent', async (t) => {
  const { owner, other } = await openTwo(t);
  t.like(await other.get('/app/stream/thumb.png', 'HEAD'), { statusCode: 200, body: '' });
  t.is(other.application.counters.out.totalBytes, 0);
  t.is(other.application.counters.maxTotalConnections, 1);
  await other.get('/app/stream/thumb.png');
  await other.get('/app/stream/thumb.png');
  t.is(other.application.counters.out.totalBytes, 'first'.length * 2);
  t.is(other.application.counters.publishers.thumbnail, 0);
  t.deepEqual([owner.application.counters.out.totalBytes, owner.application.counters.maxTotalConnections], [0, 0]);
});

test('the limit of connections is that of the node that serves', async (t) => {
  const { owner, other } = await openTwo(t, { maxConnection: 1 });
  owner.application.counters.viewer('thumbnail');
  t.is((await other.get('/app/stream/thumb.png')).statusCode, 200);
  t.is((await owner.get('/app/stream/thumb.png')).statusCode, 503);
  const leave = other.application.counters.viewer('thumbnail');
  t.is((await other.get('/app/stream/thumb.png')).statusCode, 503);
  leave();
  t.is((await other.get('/app/stream/thumb.png')).statusCode, 200);
});
