import test, { type ExecutionContext } from 'ava';
import type { Cluster } from '#cluster';
import type { Application } from '../../src/core/application.ts';
import { Registry } from '../../src/core/registry.ts';
import type { InputStream } from '../../src/core/input-stream.ts';
import { applicationPlace, serverPlace, streamPlace } from '../../src/stats/places.ts';
import type { SharedStatistics } from '../../src/stats/shared-statistics.ts';
import { Random } from '../soak/random.ts';
import { openNode } from '../support/cluster/cluster.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { videoTrack } from '../support/media/packets.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import type { RedisServer } from '../support/redis/redis.ts';
import { sharedStatistics } from '../support/cluster/shared-statistics.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';
import { RTMP, vhostConfig } from '../unit/core/support.ts';

/** A node that counts, without a server around it. */
class CountingNode {
  readonly registry = new Registry();
  readonly cluster: Cluster;
  readonly statistics: SharedStatistics;
  readonly app: Application;

  constructor(t: ExecutionContext, cluster: Cluster) {
    this.cluster = cluster;
    const application = { name: 'app', type: 'live', providers: {}, publishers: {} };
    const vhost = this.registry.createVhost(
      vhostConfig({ name: 'v', host: { names: ['*'] }, applications: [application] }),
      true,
    );
    this.app = vhost.application('app');
    this.statistics = sharedStatistics(t, cluster, this.registry);
  }

  publish(name: string): InputStream {
    const input = this.app.publish(name, RTMP, { replace: false, maxConnections: 0 });
    input.setTracks([videoTrack()]);
    return input;
  }

  /** Relays of outputs of a stream that another node has. */
  relay(name: string, output: string): InputStream {
    const relay = this.app.relay(name, output, RTMP);
    this.app.announce(relay);
    return relay.input;
  }

  /** Bytes in and out, sources, viewers: of a stream, or the server. */
  async figures(stream?: string) {
    const place = stream === undefined ? serverPlace(this.registry) : streamPlace(this.app, stream);
    const {
      counted: {
        in: { totalBytes: bytesIn },
        out: { totalBytes: bytesOut },
        providers,
        publishers,
        totalConnections,
      },
    } = await this.statistics.read(place);
    return { bytesIn, bytesOut, rtmp: providers.rtmp, webrtc: publishers.webrtc, totalConnections };
  }
}

async function openCounting(
  t: ExecutionContext,
  redis: RedisServer,
  id: string,
  port = redis.port,
): Promise<CountingNode> {
  return new CountingNode(t, await openNode(t, id, { url: `redis://127.0.0.1:${port}` }));
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

for (const seed of [1, 2, 3, 10, 13]) {
  test(`every node counts all streams, relays and viewers, each once, whatever these do (seed ${seed})`, async (t) => {
    const random = new Random(seed);
    const redis = await usedRedis(t);
    const nodes = await Promise.all(['a', 'b', 'c'].map((id) => openCounting(t, redis, id)));
    const total = { bytesIn: 0, bytesOut: 0, rtmp: 0, webrtc: 0, totalConnections: 0 };
    const of = { one: { ...total }, two: { ...total } };
    const owners = new Map<string, { readonly node: CountingNode; readonly input: InputStream }>();
    const leave: { readonly stream: InputStream; readonly gone: () => void }[] = [];
    for (let step = 0; step < 200; step++) {
      const node = random.pick(nodes);
      const name = random.pick(['one', 'two'] as const);
      const owner = owners.get(name);
      const own = of[name];
      const add = (what: Partial<typeof total>): void => {
        for (const [key, value] of Object.entries(what) as [keyof typeof total, number][])
          for (const sums of [own, total]) sums[key] += value;
      };
      const relays = [...node.app.relays.values()].map(({ input }) => input).filter((input) => input.name === name);
      const end = (stream: InputStream): void => {
        for (const [at, viewer] of [...leave.entries()].reverse()) {
          if (viewer.stream !== stream) continue;
          viewer.gone();
          leave.splice(at, 1);
          add({ webrtc: -1, totalConnections: -1 });
        }
        stream.close('over');
      };
      switch (
        random.pick([
          'publish',
          'end',
          'relay',
          'unrelay',
          'in',
          'in',
          'out',
          'viewer',
          'viewer',
          'leave',
          'wait',
          'read',
        ])
      ) {
        case 'publish':
          if (owner !== undefined) break;
          owners.set(name, { node, input: node.publish(name) });
          add({ rtmp: 1 });
          break;
        case 'end':
          if (owner === undefined) break;
          end(owner.input);
          owners.delete(name);
          add({ rtmp: -1 });
          break;
        case 'relay':
          if (!node.app.relays.has(`${name}_${relays.length}`)) node.relay(name, `${name}_${relays.length}`);
          break;
        case 'unrelay':
          for (const relay of relays) end(relay);
          break;
        case 'in': {
          const bytes = random.below(5000);
          owner?.input.counters.received(bytes);
          if (owner !== undefined) add({ bytesIn: bytes });
          break;
        }
        case 'out': {
          const bytes = random.below(5000);
          for (const relay of relays) relay.counters.sent(bytes);
          add({ bytesOut: bytes * relays.length });
          break;
        }
        case 'viewer': {
          const stream = owner?.node === node ? owner.input : relays.at(-1);
          if (stream === undefined) break;
          leave.push({ stream, gone: stream.counters.viewer('webrtc') });
          add({ webrtc: 1, totalConnections: 1 });
          break;
        }
        case 'leave': {
          const viewer = leave.findIndex(({ stream }) => stream.name === name);
          if (viewer < 0) break;
          leave.splice(viewer, 1)[0]?.gone();
          add({ webrtc: -1, totalConnections: -1 });
          break;
        }
        case 'wait':
          if (random.chance(0.3))
            await until('others heard', async () => same(await random.pick(nodes).figures(), total));
          break;
        default:
          // what the node itself counts is in the answer at once
          t.true((await node.figures()).bytesIn >= node.registry.counters.in.totalBytes);
      }
    }
    for (const node of nodes) {
      await until('the server', async () => same(await node.figures(), total)).catch(() => undefined);
      t.deepEqual(await node.figures(), total);
      for (const name of ['one', 'two'] as const) {
        await until('the stream', async () => same(await node.figures(name), of[name])).catch(() => undefined);
        t.deepEqual(await node.figures(name), of[name], name);
      }
    }
  });
}

test('totals go on when a stream moves; the most viewers there were are of the sum, and so is the time', async (t) => {
  const redis = await usedRedis(t);
  const [a, b] = await Promise.all([openCounting(t, redis, 'a'), openCounting(t, redis, 'b')]);
  const first = a.publish('s');
  first.counters.received(1000);
  const begun = Date.now();
  const leave = [first, b.relay('s', 's')].map(({ counters }) => counters.viewer('webrtc'));
  // what a node has not told yet is in its own figures alone
  for (const node of [a, b]) await until('both', async () => (await node.figures('s')).webrtc === 2);
  const seen = Date.now();
  const exact = await a.figures('s');
  t.is(exact.bytesIn, 1000);
  first.counters.received(234);
  t.is((await a.figures('s')).bytesIn, 1234, 'what this node counts is there at once');
  leave[0]?.();
  first.close('the publisher goes elsewhere');
  t.is((await a.figures('s')).bytesIn, 1234);
  b.publish('s').counters.received(100);
  await until(
    'both parts',
    async () => (await a.figures('s')).bytesIn === 1334 && (await b.figures('s')).bytesIn === 1334,
  );
  for (const node of [a, b]) {
    const { counted } = await node.statistics.read(streamPlace(node.app, 's'));
    t.like(counted, { totalConnections: 1, maxTotalConnections: 2, createdTime: first.counters.createdTime });
    t.true(counted.maxTotalConnectionTime >= begun - 1 && counted.maxTotalConnectionTime <= seen + 1);
    t.is((await node.statistics.read(applicationPlace(node.app))).counted.in.totalBytes, 1334);
  }
});

test('a node without Redis reports what it counts itself, and that others are missing; nothing is lost in the meantime', async (t) => {
  const redis = await usedRedis(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const [a, b] = await Promise.all([openCounting(t, redis, 'a', proxy.port), openCounting(t, redis, 'b')]);
  const input = a.publish('s');
  input.counters.received(10);
  b.publish('other').counters.received(5);
  await until('both', async () => (await a.figures()).bytesIn === 15 && (await b.figures()).bytesIn === 15);
  proxy.cut();
  await until('degraded', () => a.cluster.state === 'degraded');
  const { counted, stale } = await a.statistics.read(serverPlace(a.registry));
  t.true(stale);
  t.is(counted.in.totalBytes, 10);
  await until('its source left', async () => (await b.figures()).rtmp === 1);
  input.counters.received(20);
  input.close('while nobody hears it');
  proxy.heal();
  await until('all of it', async () => (await a.figures()).bytesIn === 35 && (await b.figures()).bytesIn === 35);
  await until('and of the stream that ended', async () => (await b.figures('s')).bytesIn === 30);
});

interface Statistics {
  readonly totalBytesIn: number;
  readonly totalConnections: number;
  readonly connections: Readonly<Record<string, number>>;
}

test('every node answers what all of them count, of streams that it does not have, too', async (t) => {
  const redis = await usedRedis(t);
  const nodes = await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id)));
  const [a, b, c] = nodes as [Kiln, Kiln, Kiln];
  const clients = await Promise.all([a, b].map((node, at) => PictureClient.publish(node, `s${at}`)));
  const stream = (version: string, name: string): string =>
    `/${version}/stats/current/vhosts/default/apps/app/streams/${name}`;
  t.teardown(() => clients.forEach((client) => client.close()));
  for (const node of nodes) await node.liveStream('s0');
  for (const node of nodes) await node.liveStream('s1');
  const providers = async (node: Kiln, path: string): Promise<number | undefined> =>
    (await node.api<{ providers: Statistics }>(`/v2/stats/current${path}`)).body.response.providers.connections.rtmp;
  const bytes = async (node: Kiln, path: string): Promise<number> =>
    (await node.api<Statistics>(path)).body.response.totalBytesIn;
  for (const node of nodes) {
    await until('both publishers', async () => (await providers(node, '/vhosts/default')) === 2);
    t.is(await providers(node, '/vhosts/default/apps/app'), 2);
    for (const name of ['s0', 's1']) {
      await until(
        'its publisher',
        async () => (await providers(node, `/vhosts/default/apps/app/streams/${name}`)) === 1,
      );
    }
    t.is((await node.api(stream('v1', 'none'))).status, 404);
  }
  const s1 = await until('bytes', async () => (await bytes(b, stream('v1', 's1'))) || undefined);
  await until('the bytes of another node', async () => (await bytes(c, stream('v1', 's1'))) >= s1);
  b.signal('SIGKILL');
  await until('what it had leaves', async () => (await providers(c, '/vhosts/default')) === 1);
  t.true((await bytes(c, '/v1/stats/current')) >= s1, 'what it counted stays');
  await redis.kill();
  const local = await until('stale', async () => {
    const answer = await a.api<{ providers: Statistics }>('/v2/stats/current/vhosts/default');
    return answer.headers.get('x-kiln-stale') === 'true' && answer;
  });
  t.is(local.body.response.providers.connections.rtmp, 1);
});
