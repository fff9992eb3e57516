import type { Kiln } from '../server/kiln.ts';
import { startNode } from '../server/nodes.ts';
import { Origin } from '../ovt/origin.ts';
import { RedisServer } from '../redis/redis.ts';
import { TcpProxy } from '../network/tcp-proxy.ts';
import type { Teardown } from '../programs/teardown.ts';
import type { Breakable } from './faults.ts';
import { LastingPublisher } from './publisher.ts';

const SOURCE = 'source';
const OPTIONS = { ovt: true, storage: 'api' };
const STREAMS = '/v1/vhosts/default/apps/app/streams';

export interface ChaosSizes {
  readonly ids: readonly string[];
  /** Streams that are pushed, and streams that are pulled. */
  readonly pushed: number;
  readonly pulled: number;
}

/**
 * Nodes that reach one Redis each by a way of its own, encoders that publish to them whatever happens, and streams that
 * they pull from an origin.
 */
export class ChaosCluster implements Breakable {
  readonly redis: RedisServer;
  readonly nodes: readonly Kiln[];
  readonly ids: readonly string[];
  /** Each node's way to Redis. */
  readonly ways: readonly TcpProxy[];
  readonly publishers: readonly LastingPublisher[];
  /** Names of what is pulled. */
  readonly pulled: readonly string[];
  readonly #origin: Origin;

  private constructor(
    redis: RedisServer,
    ways: readonly TcpProxy[],
    nodes: readonly Kiln[],
    origin: Origin,
    sizes: ChaosSizes,
  ) {
    this.redis = redis;
    this.ids = sizes.ids;
    this.ways = ways;
    this.nodes = nodes;
    this.publishers = Array.from({ length: sizes.pushed }, (_, at) => new LastingPublisher(`pushed${at}`, nodes, at));
    this.pulled = Array.from({ length: sizes.pulled }, (_, at) => `pulled${at}`);
    this.#origin = origin;
  }

  static async start(t: Pick<Teardown, 'teardown'>, sizes: ChaosSizes): Promise<ChaosCluster> {
    const { ids } = sizes;
    const origin = await Origin.start(t, SOURCE);
    const redis = await RedisServer.start(t, { durable: true });
    const ways = await Promise.all(ids.map(() => TcpProxy.open(t, redis.port)));
    const nodes = await Promise.all(
      ids.map((id, at) => startNode(t, { url: `redis://127.0.0.1:${ways[at]?.port}` }, id, OPTIONS)),
    );
    const cluster = new ChaosCluster(redis, ways, nodes, origin, sizes);
    // a node that stands still does not stop
    t.teardown(() => nodes.forEach((node) => node.running && node.signal('SIGCONT')));
    t.teardown(() => cluster.publishers.forEach((publisher) => publisher.close()));
    await cluster.#pull();
    return cluster;
  }

  /** All names that are to be listed. */
  get names(): readonly string[] {
    return [...this.publishers.map(({ name }) => name), ...this.pulled];
  }

  /** How many connections the origin serves. */
  pullers(): Promise<number> {
    return this.#origin.pullers(SOURCE);
  }

  async #pull(): Promise<void> {
    const [node] = this.nodes;
    for (const name of this.pulled) {
      const body = { name, urls: [this.#origin.url(SOURCE)], properties: { persistent: true, relay: true } };
      const answer = await node?.api(STREAMS, 'POST', body);
      if (answer?.status !== 201) throw new Error(`pulling ${name} was answered ${answer?.status}`);
    }
  }
}
