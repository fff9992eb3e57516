import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Random } from '../../soak/random.ts';
import type { Kiln } from '../server/kiln.ts';
import type { RedisServer } from '../redis/redis.ts';
import type { TcpProxy } from '../network/tcp-proxy.ts';
import { until } from '../time/until.ts';
import type { ChaosCluster } from './cluster.ts';

/** Nodes that reach one Redis each by a way of its own. */
export interface Breakable {
  readonly redis: RedisServer;
  readonly nodes: readonly Kiln[];
  readonly ids: readonly string[];
  /** Each node's way to Redis. */
  readonly ways: readonly TcpProxy[];
}

export type Mend = () => Promise<void> | void;
/** Something that breaks; resolves when it has. Its answer mends it. */
export type Break<C = Breakable> = (cluster: C, at: number, random: Random) => Promise<Mend> | Mend;

interface Fault {
  readonly name: string;
  /** What it takes away: one thing at a time is broken in one way. */
  readonly of: 'node' | 'way' | 'redis' | 'nothing';
  /** What was counted may be lost. */
  readonly loses?: true;
  readonly strike: Break<ChaosCluster>;
}

const nodeOf = ({ nodes }: Breakable, at: number): Kiln => nodes[at] as Kiln;
const nothing: Mend = () => {};
/** Nobody knows what comes of a call in the midst of it all, nor when: a node that stands still answers later. */
const tryCall = async (node: Kiln, path: string, method: string, body?: unknown): Promise<void> => {
  await node.api(path, method, body).catch(() => undefined);
};

const SET_BACK_MS = 3000;
const MOST_KILLS = 10;
const KILLS_APART_MS = 300;
/** What nodes notice the loss of, and restore. */
const KEYS = ['claims', 'claims:log', 'config', 'config:log', 'epoch', 'fence'];

async function withClient({ port }: RedisServer, run: (client: Redis) => Promise<unknown>): Promise<void> {
  const client = new Redis(port);
  try {
    await run(client);
  } finally {
    client.disconnect();
  }
}

export const kill =
  (signal: NodeJS.Signals): Break =>
  (cluster, at) => {
    const node = nodeOf(cluster, at);
    node.signal(signal);
    return () => node.restart();
  };

export const stand: Break = (cluster, at) => {
  const node = nodeOf(cluster, at);
  node.signal('SIGSTOP');
  return () => node.signal('SIGCONT');
};

export const block =
  (how: 'cut' | 'blackhole'): Break =>
  ({ ways }, at) => {
    ways[at]?.[how]();
    return () => ways[at]?.heal();
  };

export const killRedis =
  (isForgotten: boolean): Break =>
  async ({ redis }) => {
    await redis.kill();
    if (isForgotten) redis.forget();
    return () => redis.run();
  };

/** It comes back with what it had some seconds ago. */
const setBackRedis: Break = async ({ redis }, _at, random) => {
  redis.remember();
  await delay(random.below(SET_BACK_MS));
  await redis.kill();
  redis.recall();
  return () => redis.run();
};

const deleteKey: Break = async ({ redis }, _at, random) => {
  await withClient(redis, (client) => client.del(`{kiln:kiln}:${random.pick(KEYS)}`));
  return nothing;
};

/** Of all nodes at once, some times. */
export const killConnections: Break = async ({ redis }, _at, random) => {
  await withClient(redis, async (client) => {
    for (let left = 1 + random.below(MOST_KILLS); left > 0; left--) {
      for (const type of ['pubsub', 'normal']) await client.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
      await delay(random.below(KILLS_APART_MS));
    }
  });
  return nothing;
};

export const standRedis: Break = ({ redis }) => {
  redis.pause();
  return () => redis.resume();
};

export const drain: Break = ({ nodes, ids }, at, random) => {
  const asked = tryCall(random.pick(nodes), `/v1/cluster/nodes/${ids[at]}:drain`, 'POST');
  return async () => {
    await asked;
    await until(
      'it can be undrained',
      async () => {
        const answer = await random
          .pick(nodes)
          .api(`/v1/cluster/nodes/${ids[at]}:undrain`, 'POST')
          .catch(() => undefined);
        return answer?.status === 200;
      },
      60_000,
    );
  };
};

const configure: Break = ({ nodes }, at, random) => {
  const node = nodes[at] as Kiln;
  const app = random.pick(['one', 'two', 'three']);
  const of = '/v1/vhosts/made/apps';
  const ask = (): Promise<void> => {
    switch (random.below(4)) {
      case 0:
        return tryCall(node, '/v1/vhosts', 'POST', [{ name: 'made', host: { names: ['made.example.com'] } }]);
      case 1:
        return tryCall(node, of, 'POST', [{ name: app, type: 'live' }]);
      case 2:
        return tryCall(node, `${of}/${app}`, 'PATCH', { publishers: { llhls: { segmentCount: 3 + random.below(5) } } });
      default:
        return tryCall(node, random.chance(0.3) ? '/v1/vhosts/made' : `${of}/${app}`, 'DELETE');
    }
  };
  const asked = ask();
  return () => asked;
};

const leave: Break<ChaosCluster> = ({ publishers }, at) => {
  publishers[at % publishers.length]?.drop();
  return nothing;
};

export const FAULTS: readonly Fault[] = [
  { name: 'kill -9', of: 'node', strike: kill('SIGKILL') },
  { name: 'kill -9', of: 'node', strike: kill('SIGKILL') },
  { name: 'stop', of: 'node', strike: kill('SIGTERM') },
  { name: 'stand still', of: 'node', strike: stand },
  { name: 'stand still', of: 'node', strike: stand },
  { name: 'cut from Redis', of: 'way', strike: block('cut') },
  { name: 'no answer from Redis', of: 'way', strike: block('blackhole') },
  { name: 'Redis killed', of: 'redis', strike: killRedis(false) },
  { name: 'Redis killed and emptied', of: 'redis', loses: true, strike: killRedis(true) },
  { name: 'Redis killed and set back', of: 'redis', loses: true, strike: setBackRedis },
  { name: 'a key deleted', of: 'redis', strike: deleteKey },
  { name: 'all connections to Redis killed', of: 'redis', strike: killConnections },
  { name: 'Redis stands still', of: 'redis', strike: standRedis },
  { name: 'drain', of: 'nothing', strike: drain },
  { name: 'configure', of: 'nothing', strike: configure },
  { name: 'configure', of: 'nothing', strike: configure },
  { name: 'an encoder drops', of: 'nothing', strike: leave },
];
