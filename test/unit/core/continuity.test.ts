import test from 'ava';
import { Continuity } from '../../../src/core/continuity.ts';

test('inherited values of a stream are kept on, until a module keeps one of its own', (t) => {
  let changes = 0;
  const continuity = new Continuity(
    new Map([
      ['a', 1],
      ['b', 2],
    ]),
    () => changes++,
  );
  t.deepEqual(
    [...continuity.kept],
    [
      ['a', 1],
      ['b', 2],
    ],
  );
  t.is(changes, 0);
  continuity.keep('a', 'own');
  t.is(changes, 1);
  t.deepEqual(
    [...continuity.kept],
    [
      ['a', 'own'],
      ['b', 2],
    ],
  );
  t.is(continuity.inherited('a'), 1);
});

test('a stream that ended for good keeps no values', (t) => {
  const told: unknown[][] = [];
  const continuity: Continuity = new Continuity(new Map([['a', 1]]), () => told.push([...continuity.kept]));
  continuity.end({ taken: true });
  t.deepEqual(told, [[]]);
  t.true(continuity.over && continuity.taken);
  continuity.keep('a', 2);
  t.is(continuity.kept.size, 0);
  t.is(continuity.inherited('a'), 1);
});

test('a further publisher of a stream inherits what is kept by now, and keeps it with the stream', (t) => {
  let changes = 0;
  const continuity = new Continuity(new Map([['a', 1]]), () => changes++);
  continuity.keep('a', 2);
  const view = continuity.forPublisher();
  continuity.keep('b', 3);
  t.is(view.inherited('a'), 2);
  t.is(view.inherited('b'), undefined);
  view.keep('c', 4);
  t.is(changes, 3);
  t.deepEqual([...continuity.kept], [...view.kept]);
  t.is(continuity.kept.get('c'), 4);
  continuity.end({ taken: true });
  t.true(view.over && view.taken);
});
