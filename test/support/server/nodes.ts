import type { ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { Kiln, type KilnOptions } from './kiln.ts';
import { freePorts } from '../network/ports.ts';
import { RedisServer, type RedisServerOptions } from '../redis/redis.ts';
import { until } from '../time/until.ts';

/** A row of `GET /v1/cluster/nodes`, as far as tests look at it. */
export interface NodeInfo {
  readonly id: string;
  readonly incarnation: string;
  readonly state: string;
  readonly address?: string;
  readonly streams: number;
  readonly sessions: number;
  readonly full: boolean;
  readonly publicUrl?: string;
  readonly configDiffers: boolean;
  readonly addresses: Readonly<Record<string, readonly string[]>>;
  readonly version: string;
  readonly uptime: number;
}

export interface ClusterOptions {
  readonly secret?: string;
  readonly previousSecret?: string;
  /** Of the cluster; a free one when not given. */
  readonly port?: number;
  /** Address that it tells the others; its own unless given. */
  readonly advertise?: string;
  /** To how many others a node sends a stream. */
  readonly relayFanOut?: number;
  /** Inner XML of `Redis`, instead of its address alone. */
  readonly redisXml?: string;
  /** Further elements of `Node`. */
  readonly nodeXml?: string;
}

/**
 * A Redis that a cluster has used before: what is new may have been emptied, and lets nobody claim anything for some
 * seconds, in which previous holders may come.
 */
export async function usedRedis(
  t: Pick<ExecutionContext, 'teardown'>,
  options: RedisServerOptions = {},
): Promise<RedisServer> {
  const redis = await RedisServer.start(t, options);
  const client = new Redis(redis.url);
  await client.hset('{kiln:kiln}:epoch', { id: Date.now(), until: 0, from: 0, revision: 0 });
  client.disconnect();
  return redis;
}

/** The element of a node on loopback. */
export function clusterXml(
  redis: Pick<RedisServer, 'url'>,
  id: string,
  port: number,
  options: ClusterOptions & Pick<KilnOptions, 'host'> = {},
): string {
  const { secret = 'of this test', previousSecret, redisXml = `<Url>${redis.url}</Url>`, nodeXml = '' } = options;
  const advertise = options.advertise ?? options.host?.address ?? '127.0.0.1';
  const fanOut = options.relayFanOut === undefined ? '' : `<RelayFanOut>${options.relayFanOut}</RelayFanOut>`;
  return (
    `<Cluster><Secret>${secret}</Secret>${previousSecret === undefined ? '' : `<PreviousSecret>${previousSecret}</PreviousSecret>`}` +
    `<Redis>${redisXml}</Redis>${fanOut}` +
    `<Node><Id>${id}</Id><AdvertiseAddress>${advertise}</AdvertiseAddress><Port>${port}</Port>${nodeXml}</Node></Cluster>`
  );
}

/** A server process that joins the cluster of a Redis. It is gone after the test. `options.server` stands beside its element. */
export async function startNode(
  t: Pick<ExecutionContext, 'teardown'>,
  redis: Pick<RedisServer, 'url'>,
  id: string,
  options: KilnOptions & ClusterOptions = {},
): Promise<Kiln> {
  const { port = freePorts(1)[0] as number } = options;
  const starting = Kiln.start({ ...options, server: `${options.server ?? ''}${clusterXml(redis, id, port, options)}` });
  // at once: the test may have ended, for want of another node, when this one has started
  t.teardown(async () => {
    const [outcome] = await Promise.allSettled([starting]);
    if (outcome.status === 'fulfilled') await outcome.value.stop();
  });
  return await starting;
}

/** The nodes as one of them knows them, by id. */
export async function nodesOf(node: Kiln): Promise<ReadonlyMap<string, NodeInfo>> {
  const { body } = await node.api<NodeInfo[]>('/v1/cluster/nodes');
  return new Map(body.response.map((row) => [row.id, row]));
}

/** Waits until a node knows of the states of nodes, and of no others. */
export async function untilStates(
  node: Kiln,
  states: Readonly<Record<string, string>>,
  withinMs?: number,
): Promise<void> {
  const wanted = JSON.stringify(Object.entries(states).sort());
  const are = async (): Promise<boolean> => {
    const rows = await nodesOf(node);
    return JSON.stringify([...rows].map(([id, { state }]) => [id, state]).sort()) === wanted;
  };
  await until(`nodes are ${wanted}`, are, withinMs);
}
