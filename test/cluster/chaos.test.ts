import test from 'ava';
import { Random } from '../soak/random.ts';
import { ChaosCluster } from '../support/chaos/cluster.ts';
import { round } from '../support/chaos/round.ts';

const ROUNDS = 4;

test('whatever is killed, stands still or is cut off: afterwards the API of every node, Redis and who publishes agree', async (t) => {
  t.timeout(600_000);
  const cluster = await ChaosCluster.start(t, { ids: ['a', 'b', 'c'], pushed: 4, pulled: 2 });
  const random = new Random(5);
  for (let n = 0; n < ROUNDS; n++) t.log(await round(cluster, random));
  for (const { log } of cluster.nodes) t.notRegex(log, /uncaught|unhandled|FATAL/i);
  t.pass();
});
