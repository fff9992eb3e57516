import type { ExecutionContext } from 'ava';
import { Kiln, type KilnOptions } from './kiln.ts';
import { freePorts } from './ports.ts';
import type { RedisServer } from './redis.ts';
import { until } from './until.ts';

/** A row of `GET /v1/cluster/nodes`, as far as tests look at it. */
export interface NodeInfo {
  readonly id: string;
  readonly incarnation: string;
  readonly state: string;
  readonly address?: string;
  readonly streams: number;
  readonly sessions: number;
  readonly configDiffers: boolean;
  readonly addresses: Readonly<Record<string, readonly string[]>>;
  readonly version: string;
}

export interface ClusterOptions {
  readonly secret?: string;
  /** Inner XML of `Redis`, instead of its address alone. */
  readonly redisXml?: string;
  /** Further elements of `Node`. */
  readonly nodeXml?: string;
}

/** The element of a node on loopback. */
export function clusterXml(redis: Pick<RedisServer, 'url'>, id: string, port: number, options: ClusterOptions = {}): string {
  const { secret = 'of this test', redisXml = `<Url>${redis.url}</Url>`, nodeXml = '' } = options;
  return `<Cluster><Secret>${secret}</Secret><Redis>${redisXml}</Redis>` +
    `<Node><Id>${id}</Id><AdvertiseAddress>127.0.0.1</AdvertiseAddress><Port>${port}</Port>${nodeXml}</Node></Cluster>`;
}

/** A server process that joins the cluster of a Redis. It is gone after the test. `options.server` stands beside its element. */
export async function startNode(
  t: Pick<ExecutionContext, 'teardown'>, redis: Pick<RedisServer, 'url'>, id: string, options: KilnOptions & ClusterOptions = {},
): Promise<Kiln> {
  const [port = 0] = await freePorts(1);
  const node = await Kiln.start({ ...options, server: `${options.server ?? ''}${clusterXml(redis, id, port, options)}` });
  t.teardown(() => node.stop());
  return node;
}

/** The nodes as one of them knows them, by id. */
export async function nodesOf(node: Kiln): Promise<ReadonlyMap<string, NodeInfo>> {
  const { body } = await node.api<NodeInfo[]>('/v1/cluster/nodes');
  return new Map(body.response.map((row) => [row.id, row]));
}

/** Waits until a node knows of the states of nodes, and of no others. */
export async function untilStates(node: Kiln, states: Readonly<Record<string, string>>): Promise<void> {
  const wanted = JSON.stringify(Object.entries(states).sort());
  await until(`nodes are ${wanted}`, async () => {
    const rows = await nodesOf(node);
    return JSON.stringify([...rows].map(([id, { state }]) => [id, state]).sort()) === wanted;
  });
}
