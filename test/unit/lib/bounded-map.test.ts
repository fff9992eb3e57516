import test from 'ava';
import { BoundedMap } from '../../../src/lib/bounded-map.ts';

test('a bounded map beyond its limit removes the entry that was set longest ago', (t) => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1).set('b', 2).set('a', 3).set('c', 4);
  t.deepEqual(
    [...map],
    [
      ['a', 3],
      ['c', 4],
    ],
  );
  t.is(map.get('a'), 3, 'reading makes an entry no younger');
  map.set('d', 5);
  t.deepEqual([...map.keys()], ['c', 'd']);
});
