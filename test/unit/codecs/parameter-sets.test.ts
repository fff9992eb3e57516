import test from 'ava';
import { mergeById } from '../../../src/codecs/parameter-sets.ts';
import { costOf } from '../../support/cost.ts';

const set = (id: number, rest = 0) => Buffer.of(0x68, id, rest, 0x80);
const idOf = (nal: Buffer) => nal[1] as number;

test('a set takes the place of the one with its id, or comes behind the others', (t) => {
  const known = [set(1), set(2)];
  t.is(mergeById(known, [set(2), set(1)], idOf), known);
  t.is(mergeById(known, [], idOf), known);
  t.deepEqual(mergeById(known, [set(3), set(1, 7)], idOf), [set(1, 7), set(2), set(3)]);
});

test('many sets that are there already cost no more than few', (t) => {
  const cost = (kept: number): number => {
    const known = Array.from({ length: kept }, (_, id) => set(id));
    const found = Array.from({ length: 1000 }, () => set(kept - 1));
    return costOf(() => {
      for (let picture = 0; picture < 20; picture++) mergeById(known, found, idOf);
    });
  };
  const usual = cost(1);
  const ratio = cost(255) / usual;
  t.true(ratio < 30, `${ratio.toFixed(1)} times as much`);
});
