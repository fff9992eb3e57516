import test from 'ava';
import { Random } from '../soak/random.ts';
import { ChaosCluster } from '../support/chaos/cluster.ts';
import { round } from '../support/chaos/round.ts';

const ROUNDS = 4;
/** Errors that nodes are right to tell of when all this is done to them. */
const EXPECTED = [
  /Redis at .* cannot be reached since/,
  // with an error that clients are told of by its name: what cannot be done now, or may have been
  /"msg":"the API call failed: /,
  /a call was forwarded to the node that has the stream, which did not answer/,
];

test('the API of every node, Redis and the publishers agree after nodes were killed, suspended or cut off', async (t) => {
  t.timeout(600_000);
  const cluster = await ChaosCluster.start(t, { ids: ['a', 'b', 'c'], pushed: 4, pulled: 2 });
  const random = new Random(5);
  for (let n = 0; n < ROUNDS; n++) t.log(await round(cluster, random));
  for (const { log } of cluster.nodes) {
    const errors = log.split('\n').filter((line) => line.includes('"level":"error"'));
    t.deepEqual(
      errors.filter((line) => !EXPECTED.some((expected) => expected.test(line))),
      [],
    );
    t.notRegex(log, /"level":"fatal"|uncaught|unhandled/i);
  }
});
