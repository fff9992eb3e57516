import type { Kiln } from '../kiln.ts';
import { untilWorks } from '../until.ts';
import { Audience } from './audience.ts';
import type { TreeCluster } from './cluster.ts';
import { feedsOf, sendersOf } from './senders.ts';

const FORMED_WITHIN_MS = 30_000;

/** By node, and for all streams. */
function feeds({ nodes }: TreeCluster): Promise<(number | undefined)[]> {
  return Promise.all(nodes.map(feedsOf));
}

/**
 * Publishes another stream that viewers of all nodes play.
 * @throws Error when it does not come by three levels of nodes, for WebRTC and for LL-HLS
 */
export async function openChain(cluster: TreeCluster, others: number): Promise<Audience> {
  const { ids, nodes } = cluster;
  let before: (number | undefined)[] = [];
  // what was mended a moment ago makes calls at first
  await untilWorks(
    'each node gets each stream from one',
    async () => {
      before = await feeds(cluster);
      const all = before.reduce<number>((sum, some) => sum + (some ?? 0), 0);
      if (all !== others * (nodes.length - 1)) throw new Error(`they send ${before.join(', ')}`);
    },
    FORMED_WITHIN_MS,
  );
  const audience = await Audience.open(cluster);
  const { chain, name } = audience;
  for (const [level, at] of chain.entries()) {
    if (level === 0) continue;
    const [sender, should] = [sendersOf(nodes[at] as Kiln, name).join(), ids[chain[level - 1] as number]];
    if (sender !== should) throw new Error(`${name}: ${ids[at]} got it from ${sender}, not from ${should}`);
  }
  await untilWorks(
    `each node sends ${name} to the next one`,
    async () => {
      const now = await feeds(cluster);
      for (const [level, at] of chain.entries()) {
        const [is, should] = [now[at], (before[at] ?? 0) + (level < chain.length - 1 ? 1 : 0)];
        if (is !== should) throw new Error(`${name}: ${ids[at]} sends LL-HLS to ${is}, not to ${should}`);
      }
    },
    FORMED_WITHIN_MS,
  );
  return audience;
}
