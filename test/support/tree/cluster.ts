import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { joinKey, weighing } from '#cluster';
import type { Breakable } from '../chaos/faults.ts';
import type { Kiln } from '../server/kiln.ts';
import { encodeClip, loadClip, type Clip } from '../load/clip.ts';
import { Program } from '../load/program.ts';
import type { NamedCommands } from '../load/programs/watch-named.ts';
import { startNode, untilStates } from '../server/nodes.ts';
import { freePorts } from '../network/ports.ts';
import { SCRAPE_TOKEN } from '../api/prometheus.ts';
import { RedisServer } from '../redis/redis.ts';
import { TcpProxy } from '../network/tcp-proxy.ts';
import type { Teardown } from '../programs/teardown.ts';

/** The first one has all streams, and nothing is done to it. */
const IDS = ['owner', 'a', 'b', 'c'];
/** Of nodes for each other, where a proxy stands in front of their cluster ports. */
const ADVERTISED = '127.0.0.2';
/** Parts stay listed for longer than anything stands still. */
const LLHLS = '<SegmentDuration>4</SegmentDuration><SegmentCount>10</SegmentCount><ChunkDuration>0.5</ChunkDuration>';
const AGREED_WITHIN_MS = 60_000;

/** The nodes of a stream's way, by their places among all, each one fed by the one before it; the first one has the stream. */
export type Chain = readonly [owner: number, one: number, two: number, three: number];

/** Four nodes, each of which sends a stream to one other. They reach Redis, and each other, by ways that can be cut. */
export class TreeCluster implements Breakable {
  readonly redis: RedisServer;
  readonly nodes: readonly Kiln[];
  readonly ids: readonly string[] = IDS;
  readonly ways: readonly TcpProxy[];
  /** The way to each node for the others. */
  readonly doors: readonly TcpProxy[];
  readonly clip: Clip;
  /** Has the WebRTC viewers. */
  readonly watchers: Program<NamedCommands>;
  #streams = 0;

  private constructor(parts: Pick<TreeCluster, 'redis' | 'nodes' | 'ways' | 'doors' | 'clip' | 'watchers'>) {
    this.redis = parts.redis;
    this.nodes = parts.nodes;
    this.ways = parts.ways;
    this.doors = parts.doors;
    this.clip = parts.clip;
    this.watchers = parts.watchers;
  }

  static async start(t: Pick<Teardown, 'teardown'>): Promise<TreeCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'kiln-tree-'));
    t.teardown(() => rm(folder, { recursive: true }));
    await encodeClip(join(folder, 'clip.flv'), { size: '160x90', kbit: 150 });
    const clip = await loadClip(join(folder, 'clip.flv'));
    const redis = await RedisServer.start(t, { durable: true });
    const ways = await Promise.all(IDS.map(() => TcpProxy.open(t, redis.port)));
    const ports = freePorts(IDS.length);
    const doors = await Promise.all(ports.map((port) => TcpProxy.open(t, port, { host: ADVERTISED, port })));
    const start = (id: string, at: number): Promise<Kiln> =>
      startNode(t, { url: `redis://127.0.0.1:${ways[at]?.port}` }, id, {
        llhls: LLHLS,
        relayFanOut: 1,
        // one that is full is passed over
        nodeXml: '<Limits><Load>0</Load></Limits>',
        advertise: ADVERTISED,
        env: { KILN_ACCESS_TOKEN: SCRAPE_TOKEN },
        port: ports[at] as number,
      });
    const nodes = await Promise.all(IDS.map(start));
    // a node that stands still does not stop
    t.teardown(() => nodes.forEach((node) => node.running && node.signal('SIGCONT')));
    const watchers = new Program<NamedCommands>('watch-named.ts');
    t.teardown(() => watchers.stop());
    const cluster = new TreeCluster({ redis, ways, nodes, doors, clip, watchers });
    await cluster.complete();
    return cluster;
  }

  get owner(): Kiln {
    return this.nodes[0] as Kiln;
  }

  /** Waits until every node knows that all are ready. */
  async complete(): Promise<void> {
    const ready = Object.fromEntries(this.ids.map((id) => [id, 'ready']));
    await Promise.all(this.nodes.map((node) => untilStates(node, ready, AGREED_WITHIN_MS)));
  }

  /** The name of another stream, which takes the same way for WebRTC and for LL-HLS. */
  nextStream(): { readonly name: string; readonly chain: Chain } {
    for (;;) {
      const name = `live${++this.#streams}`;
      const ways = [joinKey('default', 'app', name), joinKey('llhls', 'default', 'app', name)].map((key) => {
        const weigh = weighing(key);
        return [1, 2, 3].toSorted((a, b) => weigh(IDS[a] as string) - weigh(IDS[b] as string));
      });
      if (`${ways[0]}` === `${ways[1]}`) return { name, chain: [0, ...(ways[0] as [number, number, number])] };
    }
  }
}
