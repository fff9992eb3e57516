import type { Random } from '../../soak/random.ts';
import type { Kiln } from '../kiln.ts';
import { until } from '../until.ts';
import type { ChaosCluster } from './cluster.ts';

/** Something that breaks; resolves when it has. Its answer mends it. */
export type Mend = () => Promise<void> | void;
type Break = (cluster: ChaosCluster, at: number, random: Random) => Promise<Mend> | Mend;

interface Fault {
  readonly name: string;
  /** What it takes away: one thing at a time is broken in one way. */
  readonly of: 'node' | 'way' | 'redis' | 'nothing';
  readonly strike: Break;
}

const nodeOf = ({ nodes }: ChaosCluster, at: number): Kiln => nodes[at] as Kiln;
const nothing: Mend = () => {};
/** Nobody knows what comes of a call in the midst of it all, nor when: a node that stands still answers later. */
const tryCall = async (node: Kiln, path: string, method: string, body?: unknown): Promise<void> => {
  await node.api(path, method, body).catch(() => undefined);
};

const kill =
  (signal: NodeJS.Signals): Break =>
  (cluster, at) => {
    const node = nodeOf(cluster, at);
    node.signal(signal);
    return () => node.restart();
  };

const stand: Break = (cluster, at) => {
  const node = nodeOf(cluster, at);
  node.signal('SIGSTOP');
  return () => node.signal('SIGCONT');
};

const block =
  (how: 'cut' | 'blackhole'): Break =>
  ({ ways }, at) => {
    ways[at]?.[how]();
    return () => ways[at]?.heal();
  };

const killRedis =
  (isForgotten: boolean): Break =>
  async ({ redis }) => {
    await redis.kill();
    if (isForgotten) redis.forget();
    return () => redis.run();
  };

const standRedis: Break = ({ redis }) => {
  redis.pause();
  return () => redis.resume();
};

const drain: Break = ({ nodes, ids }, at, random) => {
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

const leave: Break = ({ publishers }, at) => {
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
  { name: 'Redis killed and emptied', of: 'redis', strike: killRedis(true) },
  { name: 'Redis stands still', of: 'redis', strike: standRedis },
  { name: 'drain', of: 'nothing', strike: drain },
  { name: 'configure', of: 'nothing', strike: configure },
  { name: 'configure', of: 'nothing', strike: configure },
  { name: 'an encoder drops', of: 'nothing', strike: leave },
];
