import test from 'ava';
import { ClaimTable } from '../../../cluster/redis/claim-table.ts';

const claim = (fence: number, node: string) => `${fence} token ${node} ${node}-1 continue 0 null`;
const key = (name: string, fence = 1) => [name, claim(fence, 'a')] as const;

const changed = (revision: number, ...entries: (readonly [string, string])[]) =>
  ({ revision, kind: 'changed', entries, cursor: '' }) as const;
const all = (revision: number, ...entries: (readonly [string, string])[]) =>
  ({ revision, kind: 'all', entries, cursor: '' }) as const;

function open() {
  const table = new ClaimTable(
    () => {},
    (error) => {
      throw error;
    },
  );
  return { table, keys: () => [...table.list('').keys()].sort() };
}

test('claims that Redis has lost stay until it has been restored, and those not back by then go', (t) => {
  const { table, keys } = open();
  table.apply(all(3, key('kept'), key('lost'), key('late')), true);
  table.apply(all(1, key('kept')), false);
  t.deepEqual(keys(), ['kept', 'late', 'lost']);
  table.apply(changed(2, key('late', 2)), false);
  table.apply(changed(2), true);
  t.deepEqual(keys(), ['kept', 'late']);
});

test('a claim made after all claims were read stays', (t) => {
  const { table, keys } = open();
  table.apply(all(1), false);
  table.apply(changed(2, key('new')), false);
  table.apply(changed(3, key('newer')), true);
  table.apply(changed(3), true);
  t.deepEqual(keys(), ['new', 'newer']);
});

test('claims read in parts are missing only when all parts and later changes have come', (t) => {
  const { table, keys } = open();
  table.apply(all(3, key('first'), key('second'), key('moved'), key('gone')), true);
  table.apply({ ...all(7, key('first')), cursor: '12' }, true);
  t.deepEqual(keys(), ['first', 'gone', 'moved', 'second']);
  // it is read from the beginning when no other part comes
  t.is(table.revision, 3);
  table.apply({ revision: 7, kind: 'more', entries: [key('second')], cursor: '0' }, true);
  t.deepEqual(keys(), ['first', 'gone', 'moved', 'second']);
  t.is(table.revision, 7);
  table.apply(changed(8, key('moved', 2)), true);
  t.deepEqual(keys(), ['first', 'moved', 'second']);
});
