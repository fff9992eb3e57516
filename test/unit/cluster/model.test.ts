import test from 'ava';
import { failureOf } from '../../support/virtual-cluster/explain.ts';
import { Lua } from '../../support/virtual-cluster/lua.ts';

const RUNS = 200;

const repeated = process.env.KILN_SEED;
const seeds = repeated === undefined ? Array.from({ length: RUNS }, (_, at) => at + 1) : [Number(repeated)];

test('whatever happens to nodes, network and Redis, a name has one holder, and in the end all agree', async (t) => {
  t.timeout(600_000);
  const lua = await Lua.start();
  for (const seed of seeds) {
    const failure = await failureOf(seed, lua);
    t.is(failure, undefined, failure);
    if (failure !== undefined) return;
  }
});
