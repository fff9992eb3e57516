import test from 'ava';
import { startNode, untilStates, usedRedis } from '../support/nodes.ts';
import { PictureClient } from '../support/picture-client.ts';
import { RedisMonitor } from '../support/redis-monitor.ts';

const APP = '/v1/vhosts/default/apps/app';

test('a call of the management API asks Redis once, whichever node has the stream; a node that has nothing to do, little', async (t) => {
  const redis = await usedRedis(t);
  const [a, b] = await Promise.all([startNode(t, redis, 'a'), startNode(t, redis, 'b')]);
  await untilStates(b, { a: 'ready', b: 'ready' });
  const monitor = await RedisMonitor.open(t, redis);
  const log = (what: string, counts: ReadonlyMap<string, number>): void =>
    t.log(what, JSON.stringify(Object.fromEntries([...counts].sort())));
  log('idle 10 s', await monitor.during(() => new Promise((resolve) => setTimeout(resolve, 10000))));
  const publisher = await PictureClient.publish(a, 'name');
  t.teardown(() => publisher.close());
  await b.liveStream('name');
  log('stream 10 s', await monitor.during(() => new Promise((resolve) => setTimeout(resolve, 10000))));
  for (const [method, path] of [
    ['GET', `${APP}/streams/name`],
    ['GET', `${APP}/streams`],
    ['GET', `${APP}/streams/none`],
    ['GET', '/v1/stats/current/vhosts/default/apps/app/streams/name'],
    ['GET', '/v1/stats/current/vhosts/default/apps/app'],
    ['GET', '/v1/vhosts'],
    ['GET', '/v1/cluster/nodes'],
    ['GET', '/v2/internals/codecs'],
  ] as const) {
    const counts = await monitor.during(async () => {
      for (let n = 0; n < 20; n++) await b.api(path, method);
    });
    log(`20 ${method} ${path}`, counts);
  }
  let n = 0;
  log(
    '10 creations',
    await monitor.during(async () => {
      for (; n < 10; n++)
        await b.api('/v1/vhosts', 'POST', [{ name: `v${n}`, host: { names: [`v${n}.example.com`] } }]);
    }),
  );
  t.pass();
});
