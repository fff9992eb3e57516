import { ChaosCluster } from '../support/chaos/cluster.ts';
import { round } from '../support/chaos/round.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { Random } from './random.ts';

const SIZES = { ids: ['a', 'b', 'c'], pushed: 5, pulled: 3 };

/**
 * Rounds of nodes and a Redis that are killed, stopped, cut off and emptied, each ended by a time in which all must agree.
 * @returns whether they did in every round
 */
export async function cluster(seed: number, rounds: number, print: (text: string) => void): Promise<boolean> {
  print(`seed ${seed}, ${rounds} rounds`);
  const end = new Teardown();
  let n = 0;
  try {
    const nodes = await ChaosCluster.start(end, SIZES);
    const random = new Random(seed);
    while (++n <= rounds) {
      const begun = performance.now();
      const what = await round(nodes, random);
      print(`${String(n).padStart(5)}: ${what}; agreed, ${((performance.now() - begun) / 1000).toFixed(1)} s`);
    }
    print('agreed in every round');
    return true;
  } catch (error) {
    print(`${String(n).padStart(5)}: DISAGREED ${(error as Error).message}`);
    return false;
  } finally {
    await end.run();
  }
}
