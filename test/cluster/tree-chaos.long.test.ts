import test from 'ava';
import { Random } from '../soak/random.ts';
import { openChain } from '../support/tree/levels.ts';
import { TreeCluster } from '../support/tree/cluster.ts';
import { treeRound } from '../support/tree/round.ts';

const ROUNDS = 2;

test('nodes that pass a stream on are killed, stand still or are cut off: viewers elsewhere play on, and all have the same files', async (t) => {
  t.timeout(600_000);
  const cluster = await TreeCluster.start(t);
  const lasting = await openChain(cluster, 0);
  t.teardown(() => lasting.close());
  for (let n = 1; n <= ROUNDS; n++) t.log(await treeRound(cluster, lasting, new Random(n)));
  for (const { log } of cluster.nodes) t.notRegex(log, /"level":"fatal"|uncaught|unhandled/i);
});
