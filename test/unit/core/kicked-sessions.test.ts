import test from 'ava';
import { Continuity } from '../../../src/core/continuity.ts';
import { KickedSessions } from '../../../src/core/kicked-sessions.ts';
import { RecentSet } from '../../../src/lib/recent-set.ts';

test('a set forgets the oldest beyond its limit', (t) => {
  const set = new RecentSet(3, ['a', 'b', 'c', 'd']);
  t.deepEqual([...set], ['b', 'c', 'd']);
  set.add('b').add('e');
  t.deepEqual([...set], ['c', 'd', 'e']);
});

test('a kicked session stays out of the stream that continues this one, and of the next', (t) => {
  const first = new Continuity();
  const kicked = new KickedSessions(first);
  t.false(first.kept.has('kicked'));
  kicked.add('one');
  const second = new Continuity(first.kept);
  t.true(new KickedSessions(second).has('one'));
  t.true(new KickedSessions(new Continuity(second.kept)).has('one'));
});

test('a kick can be taken back, but for one that was there before', (t) => {
  const continuity = new Continuity();
  const kicked = new KickedSessions(continuity);
  const undo = kicked.add('one');
  const undoSecond = kicked.add('one');
  undoSecond();
  t.true(kicked.has('one'));
  undo();
  t.false(kicked.has('one'));
  t.deepEqual(continuity.kept.get('kicked'), []);
});

test('kicked sessions are bounded, here and for the next stream, whatever came from the one before', (t) => {
  const continuity = new Continuity(new Map([['kicked', [1, null, 'old', {}]]]));
  const kicked = new KickedSessions(continuity);
  t.true(kicked.has('old'));
  for (let i = 0; i < 2000; i++) kicked.add(`id ${i}`);
  t.false(kicked.has('old'));
  t.false(kicked.has('id 900'));
  t.true(kicked.has('id 1999'));
  const kept = continuity.kept.get('kicked') as string[];
  t.is(kept.at(-1), 'id 1999');
  t.true(kept.length <= 100);
  for (const value of [7, 'text', { length: 3 }])
    t.notThrows(() => new KickedSessions(new Continuity(new Map([['kicked', value]]))));
});
