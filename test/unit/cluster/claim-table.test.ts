import test from 'ava';
import { ClaimTable } from '../../../cluster/redis/claim-table.ts';

const claim = (fence: number, node: string) => `${fence} token ${node} ${node}-1 continue 0 null`;
const key = (name: string, fence = 1) => [name, claim(fence, 'a')] as const;

function open() {
  const table = new ClaimTable(
    () => {},
    (error) => {
      throw error;
    },
  );
  return { table, keys: () => [...table.list('').keys()].sort() };
}

test('what Redis has lost stays until it has been restored, and what has not come back by then goes', (t) => {
  const { table, keys } = open();
  table.apply({ revision: 3, full: true, entries: [key('kept'), key('lost'), key('late')] }, true);
  table.apply({ revision: 1, full: true, entries: [key('kept')] }, false);
  t.deepEqual(keys(), ['kept', 'late', 'lost']);
  table.apply({ revision: 2, full: false, entries: [key('late', 2)] }, false);
  table.apply({ revision: 2, full: false, entries: [] }, true);
  t.deepEqual(keys(), ['kept', 'late']);
});

test('what is claimed after everything was read stays', (t) => {
  const { table, keys } = open();
  table.apply({ revision: 1, full: true, entries: [] }, false);
  table.apply({ revision: 2, full: false, entries: [key('new')] }, false);
  table.apply({ revision: 3, full: false, entries: [key('newer')] }, true);
  table.apply({ revision: 3, full: false, entries: [] }, true);
  t.deepEqual(keys(), ['new', 'newer']);
});
