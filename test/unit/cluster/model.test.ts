import test from 'ava';
import { ALL } from '../../support/runner/all.ts';
import { failureOf } from '../../support/virtual-cluster/explain.ts';
import type { Action } from '../../support/virtual-cluster/plan.ts';
import { runPlan } from '../../support/virtual-cluster/model-run.ts';
import { Lua } from '../../support/virtual-cluster/lua.ts';

const RUNS = ALL ? 200 : 50;

const repeated = process.env.KILN_SEED;
const seeds = repeated === undefined ? Array.from({ length: RUNS }, (_, at) => at + 1) : [Number(repeated)];

const at = (ms: number, kind: Action['kind'], more: Partial<Action> = {}): Action => ({
  at: ms,
  kind,
  node: 0,
  other: 0,
  ms: 3,
  ...more,
});

/** What random plans seldom have: each of these needs one guard alone. */
for (const [what, actions] of [
  [
    'what another node claimed in writes that Redis has lost in the same run is not granted before a beat notices it',
    [at(2600, 'rollBack', { ms: 800 }), at(2900, 'claim')],
  ],
  [
    'who has promised another node without Redis to claim nothing keeps that when it has Redis itself',
    [at(2000, 'claim'), at(2600, 'allFromRedis', { other: 9, ms: 0 }), at(8000, 'keep')],
  ],
  [
    'a Redis that comes back from before a node was restarted waits for what that node has now',
    [
      at(1800, 'rollBack', { ms: 1500 }),
      at(2000, 'kill', { node: 1 }),
      at(2300, 'start', { node: 1 }),
      at(2900, 'claim', { node: 1, ms: 1 }),
    ],
  ],
  [
    'two nodes of which Redis has lost one entry each, so that there are as many of both kinds, are back with their beats',
    [at(2600, 'deleteEntry', { other: 10 }), at(2601, 'deleteEntry', { other: 3 })],
  ],
] as const)
  test.serial(what, async (t) => {
    const wrong = await runPlan({ seed: 1, nodes: 2, keys: 2, actions }, { lua: await Lua.start() });
    t.is(wrong, undefined);
  });

test.serial(
  'a name has one holder, and all nodes agree in the end, whatever happens to nodes, network and Redis',
  async (t) => {
    t.timeout(600_000);
    const lua = await Lua.start();
    for (const seed of seeds) {
      const failure = await failureOf(seed, lua);
      t.is(failure, undefined, failure);
      if (failure !== undefined) return;
    }
  },
);
