import test from 'ava';
import { place, type NodeRow } from '#cluster';
import { Random } from '../../soak/random.ts';

const row = (id: string, values: Partial<NodeRow> = {}): NodeRow => ({
  id,
  incarnation: id,
  address: undefined,
  state: 'ready',
  load: 0.5,
  full: false,
  info: {},
  uptimeMs: 0,
  silentMs: 0,
  ...values,
});

/** How often each node was chosen. */
function spread(nodes: readonly NodeRow[], times = 2000): Record<string, number> {
  const random = new Random(7);
  const counts: Record<string, number> = {};
  for (let n = 0; n < times; n++) {
    const id = place(nodes, () => random.below(1e6) / 1e6)?.id ?? 'none';
    counts[id] = (counts[id] ?? 0) + 1;
  }
  return counts;
}

test('nothing is placed on a node that is lost, drains or starts, and on a full one only where all are full', (t) => {
  const nodes = [
    row('lost', { state: 'lost' }),
    row('draining', { state: 'draining' }),
    row('starting', { full: true }),
    row('full', { full: true, info: { version: '1' } }),
    row('able'),
  ];
  t.deepEqual(spread(nodes, 50), { able: 50 });
  t.deepEqual(spread(nodes.slice(0, 4), 50), { full: 50 });
  t.is(place(nodes.slice(0, 3)), undefined);
  t.is(place([]), undefined);
});

test('the less loaded of two nodes is always chosen', (t) => {
  t.deepEqual(spread([row('busy', { load: 0.9 }), row('idle', { load: 0.1 })]), { idle: 2000 });
});

test('the least loaded of many gets more, but not everything; the most loaded nothing; equals get the same', (t) => {
  const graded = spread([0.1, 0.2, 0.3, 0.4, 0.5].map((load) => row(`at ${load}`, { load })));
  t.is(graded['at 0.5'], undefined);
  // 4 of 10 pairs have it, 3 of 10 the next
  t.true(Math.abs((graded['at 0.1'] ?? 0) / 2000 - 0.4) < 0.05, JSON.stringify(graded));
  t.true(Math.abs((graded['at 0.2'] ?? 0) / 2000 - 0.3) < 0.05, JSON.stringify(graded));
  const equal = spread(['a', 'b', 'c', 'd'].map((id) => row(id)));
  for (const count of Object.values(equal)) t.true(Math.abs(count - 500) < 80, JSON.stringify(equal));
});
