import test from 'ava';
import { Redis } from 'ioredis';
import { ByteSink } from '../support/network/byte-sink.ts';
import { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { shared } from '../support/runner/shared.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { Origin } from '../support/ovt/origin.ts';
import { OvtViewer } from '../support/ovt/ovt-viewer.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';

const IDS = ['a', 'b', 'c'] as const;
const APP = '/v1/vhosts/default/apps/app';
const list = async (node: Kiln): Promise<string[]> =>
  [...(await node.api<string[]>(`${APP}/streams`)).body.response].sort();

const flows = async ({ arrivals }: OvtViewer): Promise<void> => {
  const before = arrivals.length;
  await until('it flows', () => arrivals.length > before + 10);
};

function originsXml(url: string, more = ''): string {
  return (
    `<Origins><Properties><UnusedStreamDeletionTimeout>5000</UnusedStreamDeletionTimeout></Properties><Origin>` +
    `<Location>/app/</Location><Pass><Scheme>ovt</Scheme><Urls><Url>${url}</Url></Urls></Pass>${more}</Origin></Origins>`
  );
}

const teardown = new Teardown();
test.after.always(() => teardown.run());

/** Three nodes that pull from an origin. */
const cluster = shared(async () => {
  const [origin, redis] = await Promise.all([Origin.start(teardown, 'src', 'other'), usedRedis(teardown)]);
  const options = { ovt: true, vhost: originsXml(`127.0.0.1:${origin.kiln.ports.ovt}/app/`), publishers: '<Push/>' };
  const starting = IDS.map((id) => startNode(teardown, redis, id, options));
  const nodes = (await Promise.all(starting)) as [Kiln, Kiln, Kiln];
  for (const node of nodes) await untilStates(node, { a: 'ready', b: 'ready', c: 'ready' });
  // a Redis that is new may have been emptied: claims are made when nobody can come any more who held them
  const first = await until('something can be pulled', () =>
    OvtViewer.play(teardown, nodes[0].ovtUrl('other')).catch(() => undefined),
  );
  await flows(first);
  first.close();
  await until('it is unused', async () => (await list(nodes[1])).length === 0);
  return { origin, redis, nodes };
});

/** Viewers of `src` that play, two on each node. */
const playing = shared(async () => {
  const { nodes } = await cluster();
  const viewers = await Promise.all([...nodes, ...nodes].map((node) => OvtViewer.play(teardown, node.ovtUrl('src'))));
  for (const viewer of viewers) await flows(viewer);
  return viewers;
});

/** Kills the node that pulls `src`. @returns the other two, and the viewers on them */
const survivors = shared(async () => {
  const viewers = await playing();
  const { nodes } = await cluster();
  const owner = await until('one node alone pulls', async () => {
    const owners = [...(await nodesOf(nodes[0])).values()].filter(({ streams }) => streams > 0);
    return owners.length === 1 && owners[0];
  });
  const victim = nodes[IDS.findIndex((id) => id === owner.id)] as Kiln;
  victim.signal('SIGKILL');
  await victim.exited();
  const left = nodes.filter((node) => node !== victim) as [Kiln, Kiln];
  return { left, viewers: viewers.filter((_one, at) => nodes[at % IDS.length] !== victim) };
});

long('viewers on three nodes of a stream that only an origin has share one pull', async (t) => {
  await playing();
  const { origin, nodes } = await cluster();
  t.is(await origin.pullers('src'), 1);
  t.is((await nodes[0].stream('src')).body.response.input.sourceUrl, origin.url('src'));
});

long(
  'LL-HLS players on three nodes of a stream that only an origin has share one pull, which ends unused',
  async (t) => {
    await playing();
    const { origin, nodes } = await cluster();
    await Promise.all(
      nodes.map((node) =>
        until('a playlist', async () => {
          const { status } = await fetch(node.httpUrl('/app/other/llhls.m3u8'));
          t.true(status === 200 || status === 201, `${status}`);
          return status === 200;
        }),
      ),
    );
    t.is(await origin.pullers('other'), 1);
    await until('nobody plays it any more', async () => !(await list(nodes[0])).includes('other'));
    for (const node of nodes) t.deepEqual(await list(node), ['src']);
  },
);

long('a stream that no origin has is answered with 404, and not kept in Redis', async (t) => {
  await playing();
  const { redis, nodes } = await cluster();
  t.is((await fetch(nodes[1].httpUrl('/app/none/llhls.m3u8'))).status, 404);
  await t.throwsAsync(OvtViewer.play(t, nodes[0].ovtUrl('none')), { name: 'OvtError', message: /404/ });
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const kept = await until('the stream that was pulled is kept', async () => {
    const keys = await raw.keys('*kept:*');
    return keys.some((key) => key.endsWith('src')) && keys;
  });
  t.deepEqual(
    kept.filter((key) => key.includes('none')),
    [],
    'what never was is not kept',
  );
});

long('a pull from an origin outlives the node that made it, and ends unused', async (t) => {
  const { left, viewers } = await survivors();
  const { origin } = await cluster();
  for (const viewer of viewers) await flows(viewer);
  t.is(await origin.pullers('src'), 1);
  for (const viewer of await playing()) viewer.close();
  await until('it is gone', async () => (await list(left[0])).length === 0 && (await list(left[1])).length === 0);
  await until('the origin is left', async () => (await origin.pullers('src')) === 0);
});

long('a stream that a push waits for is pulled from its origin', async (t) => {
  const { left } = await survivors();
  const { origin } = await cluster();
  const sink = await ByteSink.open(t);
  const push = { id: 'out', stream: { name: 'other' }, protocol: 'mpegts', url: sink.url };
  t.is((await left[1].api(`${APP}:startPush`, 'POST', push)).status, 200);
  await until('a stream that a push waits for is pulled', () => sink.bytes > 0);
  t.is(await origin.pullers('other'), 1);
  t.is((await left[0].api(`${APP}:stopPush`, 'POST', { id: 'out' })).status, 200);
});

const storeXml = (redis: RedisServer, more = '') =>
  `<OriginMapStore><RedisServer><Host>127.0.0.1:${redis.port}</Host><Auth>secret</Auth></RedisServer>${more}</OriginMapStore>`;

long('origins share their streams in a Redis, and pull those that they do not have', async (t) => {
  const redis = await RedisServer.start(t, { args: ['--requirepass', 'secret'] });
  const raw = new Redis({ port: redis.port, password: 'secret' });
  raw.on('error', () => {});
  t.teardown(() => raw.disconnect());
  const vhost = storeXml(redis, '<OriginHostName>127.0.0.1</OriginHostName>');
  const [one, two, edge] = await Promise.all([
    Kiln.start({ ovt: true, vhost }),
    Kiln.start({ ovt: true, vhost }),
    Kiln.start({ ovt: true, vhost }),
  ]);
  t.teardown(() => Promise.all([one, two, edge].map((kiln) => kiln.stop())));
  const first = await PictureClient.publish(one, 'src');
  t.teardown(() => first.close());
  await until('it is told of', async () => (await raw.get('app/src')) === one.ovtUrl('src'));
  const ttl = await raw.ttl('app/src');
  t.true(ttl > 0 && ttl <= 10, `${ttl}`);
  const second = await PictureClient.publish(two, 'src');
  t.teardown(() => second.close());
  await two.liveStream('src');
  const viewer = await until('it is pulled', () => OvtViewer.play(t, edge.ovtUrl('src')).catch(() => undefined));
  await flows(viewer);
  t.is((await edge.stream('src')).body.response.input.sourceUrl, one.ovtUrl('src'));
  t.is(await raw.get('app/src'), one.ovtUrl('src'), 'neither the candidate nor who pulls it takes its place');
  await t.throwsAsync(OvtViewer.play(t, edge.ovtUrl('none')), { message: /404/ });
  await raw.set('app/foreign', two.ovtUrl('src'));
  await flows(await until('it is pulled', () => OvtViewer.play(t, edge.ovtUrl('foreign')).catch(() => undefined)));

  await redis.kill();
  await redis.run();
  await until('all is told again', async () => ((await raw.get('app/src').catch(() => null)) ?? '') !== '');
  const teller = await raw.get('app/src');
  if (teller === one.ovtUrl('src')) first.close();
  else second.close();
  const other = teller === one.ovtUrl('src') ? two.ovtUrl('src') : one.ovtUrl('src');
  await until('the other tells', async () => (await raw.get('app/src')) === other);
  first.close();
  second.close();
  await until('nobody tells', async () => (await raw.get('app/src')) === null);
});

long(
  'viewers of an application that only a template makes get what its origin has, and make no application of what it has not',
  async (t) => {
    const origin = await Origin.start(t, 'src');
    const edge = await Kiln.start({ ovt: true, hostName: 'default.example.com' });
    t.teardown(() => edge.stop());
    const applications = [{ name: '*', type: 'live', providers: { ovt: {} }, publishers: { ovt: {}, llhls: {} } }];
    const location = {
      location: '/app/',
      pass: { scheme: 'ovt', urls: { url: [`127.0.0.1:${origin.kiln.ports.ovt}/app/`] } },
    };
    const vhost = { name: 'edge', host: { names: ['*'] }, origins: { origin: [location] }, applications };
    t.is((await edge.api('/v1/vhosts', 'POST', [vhost])).status, 200);
    t.is((await fetch(edge.httpUrl('/none/src/llhls.m3u8'))).status, 404);
    t.deepEqual((await edge.api('/v1/vhosts/edge/apps')).body.response, []);
    await flows(await OvtViewer.play(t, edge.ovtUrl('src')));
    t.deepEqual((await edge.api('/v1/vhosts/edge/apps')).body.response, ['app']);
    await until('a playlist', async () => (await fetch(edge.httpUrl('/app/src/llhls.m3u8'))).status === 200);
    t.is(await origin.pullers('src'), 1);
  },
);
