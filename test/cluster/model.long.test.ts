import test from 'ava';
import { Random } from '../soak/random.ts';
import { runModel } from '../support/model/run.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';

const CALLS = Number(process.env.KILN_MODEL_CALLS ?? 400);

test(`${CALLS} random calls to random nodes are answered as one server would`, async (t) => {
  t.timeout(600_000);
  const redis = await usedRedis(t);
  const own = { hostName: 'default.example.com' };
  const nodes = await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id, own)));
  const kinds = new Map<string, number>();
  await runModel({
    nodes,
    random: new Random(20_26),
    calls: CALLS,
    onCall: (_done, what) => kinds.set(what.split(' ')[0] ?? '', (kinds.get(what.split(' ')[0] ?? '') ?? 0) + 1),
  });
  t.log([...kinds].map(([kind, count]) => `${kind} ${count}`).join(', '));
  t.true((kinds.get('publish') ?? 0) > CALLS / 20);
  for (const { log } of nodes) t.notRegex(log, /"level":"(error|fatal)"/);
});
