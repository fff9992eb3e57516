import { block, drain, kill, killConnections, killRedis, stand, standRedis, type Break } from '../chaos/faults.ts';
import type { TreeCluster } from './cluster.ts';

/**
 * What a WebRTC viewer may miss for a fault, in seconds, beside a group of pictures: who sends nothing is left after 3 s of silence, and
 * each other node that is asked then, and stands still too, has 1.5 s to answer.
 */
export const SILENT_SECONDS = 3 + 1.5;

interface TreeFault {
  readonly name: string;
  /** What it takes away: one thing at a time is broken in one way. */
  readonly of: 'node' | 'way' | 'door' | 'redis' | 'nothing';
  /** Viewers of the node itself are gone. */
  readonly ends?: true;
  /** The node itself does nothing meanwhile. */
  readonly stands?: true;
  /** Seconds that viewers of others may miss beside a group of pictures; undefined: nothing, not even that. */
  readonly silent?: number;
  readonly strike: Break<TreeCluster>;
}

const shut =
  (how: 'cut' | 'blackhole'): Break<TreeCluster> =>
  ({ doors }, at) => {
    doors[at]?.[how]();
    return () => doors[at]?.heal();
  };

/** Of nodes, as the others see them. */
const OFTEN: readonly TreeFault[] = [
  { name: 'kill -9', of: 'node', ends: true, silent: 0, strike: kill('SIGKILL') },
  { name: 'stand still', of: 'node', stands: true, silent: SILENT_SECONDS, strike: stand },
  { name: 'drain', of: 'nothing', silent: 0, strike: drain },
  { name: 'cut from the others', of: 'door', silent: 0, strike: shut('cut') },
  { name: 'no answer to the others', of: 'door', silent: SILENT_SECONDS, strike: shut('blackhole') },
];

export const TREE_FAULTS: readonly TreeFault[] = [
  ...OFTEN,
  ...OFTEN,
  { name: 'stop', of: 'node', ends: true, silent: 0, strike: kill('SIGTERM') },
  { name: 'cut from Redis', of: 'way', silent: 0, strike: block('cut') },
  { name: 'no answer from Redis', of: 'way', silent: 0, strike: block('blackhole') },
  { name: 'Redis killed', of: 'redis', strike: killRedis(false) },
  { name: 'Redis killed and emptied', of: 'redis', strike: killRedis(true) },
  { name: 'Redis stands still', of: 'redis', strike: standRedis },
  { name: 'all connections to Redis killed', of: 'redis', strike: killConnections },
];
