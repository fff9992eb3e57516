import test from 'ava';
import { ranked } from '#cluster';
import { nodeRow as row } from '../../support/cluster/node-row.ts';

const NODES = ['a', 'b', 'c', 'd'].map((id) => row(id));
const KEYS = Array.from({ length: 200 }, (_, n) => `task/${n}`);

test('all nodes rank alike, in whatever order they know each other', (t) => {
  for (const key of KEYS) t.deepEqual(ranked(key, NODES), ranked(key, NODES.toReversed()));
});

test('tasks spread over the nodes, at every rank', (t) => {
  for (const rank of [0, 1, 3]) {
    for (const { id } of NODES) {
      const count = KEYS.filter((key) => ranked(key, NODES)[rank] === id).length;
      t.true(count > 25 && count < 85, `${id} is ${count} times at ${rank}`);
    }
  }
});

test('the last owner of a task delays no other before its death is known; its next incarnation counts again', (t) => {
  const nodes = ['a', 'b', 'c', 'd'].map((id) => row(id, { incarnation: `life of ${id}` }));
  for (const key of KEYS) {
    for (const former of nodes) {
      const left = nodes.filter((node) => node !== former);
      t.deepEqual(ranked(key, nodes, former), ranked(key, left));
      t.deepEqual(ranked(key, nodes, { id: former.id, incarnation: 'earlier' }), ranked(key, nodes));
    }
  }
});

test('a node that goes changes nothing for tasks that others are first for', (t) => {
  const [gone, ...left] = NODES;
  for (const key of KEYS) {
    const before = ranked(key, NODES).filter((id) => id !== gone?.id);
    t.deepEqual(ranked(key, left), before);
  }
});

test('the first of two nodes in rank is the one with clearly less load', (t) => {
  const busy = NODES.map((node) => (node.id === 'a' ? { ...node, load: 0.9 } : node));
  for (const key of KEYS) {
    const [first, second, ...rest] = ranked(key, NODES);
    const expected = first === 'a' ? [second, first, ...rest] : [first, second, ...rest];
    t.deepEqual(ranked(key, busy), expected as string[]);
  }
  const nearly = NODES.map((node) => (node.id === 'a' ? { ...node, load: 0.1 } : node));
  for (const key of KEYS) t.deepEqual(ranked(key, nearly), ranked(key, NODES));
});

test('a node that drains, starts or is lost takes no task', (t) => {
  const nodes = [row('a', { state: 'draining' }), row('b', { full: true }), row('c', { state: 'lost' }), row('d')];
  t.deepEqual(ranked('k', nodes), ['d']);
  t.deepEqual(ranked('k', nodes.slice(0, 3)), []);
});

test('a full node comes after all that have room, and takes what no other can', (t) => {
  const full = { full: true, info: { version: '1' } };
  for (const key of KEYS) {
    const nodes = NODES.map((node) => ('ab'.includes(node.id) ? { ...node, ...full } : node));
    const order = ranked(key, nodes);
    t.deepEqual(order.slice(0, 2).sort(), ['c', 'd']);
    t.deepEqual(order.slice(2).sort(), ['a', 'b']);
    t.deepEqual(ranked(key, nodes.slice(0, 1)), ['a']);
  }
});
