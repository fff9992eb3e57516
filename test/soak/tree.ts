import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openChain } from '../support/tree/levels.ts';
import { TreeCluster } from '../support/tree/cluster.ts';
import { treeRound } from '../support/tree/round.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { Random } from './random.ts';

const SEEDS_APART = 1000;

/**
 * Rounds of faults of nodes that pass a stream on, and of Redis, while viewers on all nodes play.
 * @returns whether none of those that could play on was lost, and all nodes had the same files
 */
export async function tree(seed: number, rounds: number, print: (text: string) => void): Promise<boolean> {
  print(`seed ${seed}, ${rounds} rounds of a relay tree of three levels`);
  const end = new Teardown();
  let n = 0;
  let cluster: TreeCluster | undefined;
  try {
    cluster = await TreeCluster.start(end);
    const lasting = await openChain(cluster, 0);
    while (++n <= rounds) {
      const begun = performance.now();
      // one of its own: how often some faults ask for a number depends on how long they take
      const what = await treeRound(cluster, lasting, new Random(seed * SEEDS_APART + n));
      print(`${String(n).padStart(5)}: ${what}; ${((performance.now() - begun) / 1000).toFixed(1)} s`);
    }
    await cluster.complete();
    await openChain(cluster, 1);
    print('everybody played on in every round');
    return true;
  } catch (error) {
    print(`${String(n).padStart(5)}: LOST ${(error as Error).message}`);
    if (cluster !== undefined) print(`the nodes' logs are in ${saveLogs(cluster)}`);
    return false;
  } finally {
    await end.run();
  }
}

/** A round comes again with its seed, but not to the millisecond. @returns the folder */
function saveLogs({ ids, nodes }: TreeCluster): string {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-tree-logs-'));
  for (const [at, { log }] of nodes.entries()) writeFileSync(join(folder, `${ids[at]}.log`), log);
  return folder;
}
