import type { Kiln } from '../server/kiln.ts';
import { untilWorks } from '../time/until.ts';
import { Audience } from './audience.ts';
import type { TreeCluster } from './cluster.ts';
import { feedsOf, sendersOf } from './senders.ts';

const FORMED_WITHIN_MS = 45_000;
/** A node that plays a stream asks for it at first, and follows it from then on. */
const FED_WITHIN_MS = 5000;

/** By node, and for all streams. */
function feeds({ nodes }: TreeCluster): Promise<(number | undefined)[]> {
  return Promise.all(nodes.map(feedsOf));
}

/**
 * Publishes a stream that viewers of all nodes play, and another one where that takes another way: a node that another one has left is
 * not asked by it for some seconds.
 * @param others how many streams are played besides
 * @throws Error when none comes by three levels of nodes, for WebRTC and for LL-HLS
 */
export function openChain(cluster: TreeCluster, others: number): Promise<Audience> {
  return untilWorks(
    'a stream takes three levels of nodes',
    async () => {
      const before = await feeds(cluster);
      const all = before.reduce<number>((sum, some) => sum + (some ?? 0), 0);
      // what was mended a moment ago makes calls at first
      if (all !== others * (cluster.nodes.length - 1)) throw new Error(`LL-HLS is sent to ${before.join(', ')} nodes`);
      const audience = await Audience.open(cluster);
      try {
        await checkChain(cluster, audience, before);
      } catch (error) {
        await audience.close();
        throw error;
      }
      return audience;
    },
    FORMED_WITHIN_MS,
  );
}

/** @throws Error when a node does not get the stream from the one before it */
async function checkChain(
  cluster: TreeCluster,
  { chain, name }: Audience,
  before: readonly (number | undefined)[],
): Promise<void> {
  const { ids, nodes } = cluster;
  for (const [level, at] of chain.slice(1).entries()) {
    const [sender, should] = [sendersOf(nodes[at] as Kiln, name).join(), ids[chain[level] as number]];
    if (sender !== should) throw new Error(`${name}: ${ids[at]} got it from ${sender}, not from ${should}`);
  }
  await untilWorks(
    `each node sends ${name} to the next one`,
    async () => {
      const now = await feeds(cluster);
      for (const [level, at] of chain.entries()) {
        const [is, should] = [now[at], (before[at] ?? 0) + (level < chain.length - 1 ? 1 : 0)];
        if (is !== should) throw new Error(`${name}: ${ids[at]} sends LL-HLS to ${is} nodes, not to ${should}`);
      }
    },
    FED_WITHIN_MS,
  );
}
