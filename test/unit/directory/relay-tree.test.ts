import test from 'ava';
import type { NodeIdentity, NodeRow } from '#cluster';
import { RelayTree } from '../../../src/directory/relay-tree.ts';
import { nodeRow as row } from '../../support/cluster/node-row.ts';
import { seeded } from '../codecs/vectors.ts';

const FAN_OUT = 8;

const idsOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `node-${i}`);

function treeOf(id: string, rows: readonly NodeRow[], fanOut = FAN_OUT): RelayTree {
  return new RelayTree({ self: row(id), nodes: () => rows }, fanOut);
}

/** Where each node but the owner gets a stream from: the id of its parent, the owner's included. */
function parentsOf(stream: string, owner: NodeIdentity, rows: readonly NodeRow[]): Map<string, string> {
  const others = rows.filter(({ id }) => id !== owner.id);
  return new Map(others.map(({ id }) => [id, treeOf(id, rows).parent(stream, owner)?.id ?? owner.id]));
}

/** Steps to the owner. @throws when there is a loop */
function depthOf(id: string, owner: string, parents: ReadonlyMap<string, string>): number {
  let depth = 0;
  for (let at = id; at !== owner; at = parents.get(at) ?? owner) {
    if (++depth > parents.size) throw new Error(`${id} is in a loop`);
  }
  return depth;
}

for (const [edges, deepest] of [
  [1, 1],
  [8, 1],
  [9, 2],
  [64, 2],
  [72, 2],
  [73, 3],
  [584, 3],
  [600, 4],
] as const) {
  test(`${edges} nodes get a stream over at most ${deepest} steps, from ${FAN_OUT} each at most`, (t) => {
    const rows = ['owner', ...idsOf(edges)].map((id) => row(id));
    const parents = parentsOf('a stream', row('owner'), rows);
    const children = new Map<string, number>();
    for (const parent of parents.values()) children.set(parent, (children.get(parent) ?? 0) + 1);
    t.true(Math.max(...children.values()) <= FAN_OUT);
    t.is(Math.max(...[...parents.keys()].map((id) => depthOf(id, 'owner', parents))), deepest);
  });
}

test('nodes that are full, or silent, have their place', (t) => {
  const random = seeded(8);
  for (const more of [{ full: true }, { state: 'silent' as const }]) {
    for (const share of [0.1, 0.5, 1]) {
      const rows = ['owner', ...idsOf(600)].map((id) => row(id, random() < share ? more : {}));
      const parents = parentsOf('a stream', row('owner'), rows);
      const children = new Map<string, number>();
      for (const parent of parents.values()) children.set(parent, (children.get(parent) ?? 0) + 1);
      t.is(children.get('owner'), FAN_OUT);
      for (const { id } of rows.slice(1))
        t.is(treeOf('owner', rows).isFirst('a stream', row(id)), parents.get(id) === 'owner');
      if (more.full === true) t.true(Math.max(...children.values()) <= FAN_OUT);
    }
  }
});

test('streams take other ways', (t) => {
  const rows = ['owner', ...idsOf(40)].map((id) => row(id));
  const ways = ['one', 'two', 'three'].map((stream) => [...parentsOf(stream, row('owner'), rows).values()].join(' '));
  t.is(new Set(ways).size, ways.length);
});

test('nodes that do not agree on which others are there, and on what cannot be reached, make no loop', (t) => {
  const random = seeded(20_261);
  const ids = idsOf(60);
  for (let round = 0; round < 30; round++) {
    const owner = row('owner');
    const parents = new Map<string, string>();
    for (const id of ids) {
      const states = ['ready', 'ready', 'draining', 'silent', 'lost'] as const;
      const view = ['owner', ...ids]
        .filter(() => random() < 0.7)
        .map((other) =>
          row(other, {
            state: states[Math.floor(random() * states.length)] ?? 'ready',
            full: random() < 0.2,
            load: random(),
          }),
        );
      const shunned = new Set(ids.filter(() => random() < 0.2).map((other) => `of ${other}`));
      const tree = treeOf(id, view, 1 + Math.floor(random() * 3));
      const parent = tree.parent('a stream', owner, shunned);
      if (parent !== undefined) {
        t.true(view.includes(parent) && ['ready', 'silent'].includes(parent.state) && !shunned.has(parent.incarnation));
        t.true(treeOf(parent.id, []).mayFeed('a stream', row(id)), 'a parent feeds who chose it, whatever it sees');
        t.false(treeOf(id, []).mayFeed('a stream', parent));
      }
      parents.set(id, parent?.id ?? 'owner');
    }
    t.notThrows(() => ids.map((id) => depthOf(id, 'owner', parents)));
  }
});

test("the first few nodes of an owner's tree have no other parent, and the others have", (t) => {
  const rows = ['owner', ...idsOf(20)].map((id) => row(id));
  const owner = treeOf('owner', rows);
  const parents = parentsOf('a stream', row('owner'), rows);
  for (const [id, parent] of parents) t.is(owner.isFirst('a stream', row(id)), parent === 'owner');
  t.is([...parents.values()].filter((parent) => parent === 'owner').length, FAN_OUT);
});

test('a node with children in the relay tree finds that it has some', (t) => {
  const rows = ['owner', ...idsOf(30)].map((id) => row(id));
  const parents = parentsOf('a stream', row('owner'), rows);
  for (const id of parents.keys()) {
    const isParent = [...parents.values()].includes(id);
    t.is(treeOf(id, rows).hasChildren('a stream', row('owner')), isParent, id);
  }
});

test('a parent is left when it drains, goes, or has started again', (t) => {
  const parent = row('parent');
  const seenAs = (...rows: NodeRow[]): boolean => treeOf('child', rows).has(parent);
  t.true(seenAs(row('parent')));
  t.true(seenAs(row('parent', { full: true })), 'it has room for those that it feeds already');
  t.false(seenAs(row('parent', { state: 'draining' })));
  t.true(seenAs(row('parent', { state: 'silent' })), 'it may have lost Redis alone');
  t.false(seenAs(row('parent', { state: 'lost' })));
  t.false(seenAs(row('parent', { incarnation: 'another' })));
  t.false(seenAs());
});
