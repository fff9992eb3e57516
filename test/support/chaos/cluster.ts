import type { Kiln } from '../kiln.ts';
import { startNode } from '../nodes.ts';
import { RedisServer } from '../redis.ts';
import { TcpProxy } from '../tcp-proxy.ts';
import type { Teardown } from '../teardown.ts';
import { LastingPublisher } from './publisher.ts';

/** Nodes that reach one Redis each by a way of its own, and encoders that publish to them whatever happens. */
export class ChaosCluster {
  readonly redis: RedisServer;
  readonly nodes: readonly Kiln[];
  readonly ids: readonly string[];
  /** Each node's way to Redis. */
  readonly ways: readonly TcpProxy[];
  readonly publishers: readonly LastingPublisher[];

  private constructor(redis: RedisServer, ids: readonly string[], ways: readonly TcpProxy[], nodes: readonly Kiln[], publishers: number) {
    this.redis = redis;
    this.ids = ids;
    this.ways = ways;
    this.nodes = nodes;
    this.publishers = Array.from({ length: publishers }, (_, at) => new LastingPublisher(`stream${at}`, nodes, at));
  }

  static async start(t: Pick<Teardown, 'teardown'>, ids: readonly string[], publishers: number): Promise<ChaosCluster> {
    const redis = await RedisServer.start(t, { durable: true });
    const ways = await Promise.all(ids.map(() => TcpProxy.open(t, redis.port)));
    const nodes = await Promise.all(ids.map((id, at) => startNode(t, { url: `redis://127.0.0.1:${ways[at]?.port}` }, id)));
    const cluster = new ChaosCluster(redis, ids, ways, nodes, publishers);
    // a node that stands still does not stop
    t.teardown(() => nodes.forEach((node) => node.running && node.signal('SIGCONT')));
    t.teardown(() => cluster.publishers.forEach((publisher) => publisher.close()));
    return cluster;
  }
}
