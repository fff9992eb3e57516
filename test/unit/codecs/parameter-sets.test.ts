import { BitstreamError } from '../../../src/codecs/bits.ts';
import test from 'ava';
import { ParameterSets, withoutIds } from '../../../src/codecs/parameter-sets.ts';
import { costOf } from '../../support/time/cost.ts';

const set = (id: number, rest = 0) => Buffer.of(0x68, id, rest, 0x80);
const setsOf = (...nals: Buffer[]): ParameterSets => {
  const sets = new ParameterSets((nal) => ({ kind: 8, id: nal[1] as number, of: (nal[1] as number) % 2 }));
  sets.add(nals);
  return sets;
};
const all = (sets: ParameterSets, of?: number) => sets.all(8, of).map(({ nal }) => nal);

test('a set takes the place of the one with its id, or comes behind the others', (t) => {
  const sets = setsOf(set(1), set(2));
  const { version } = sets;
  t.deepEqual(sets.add([set(2), set(1)]), []);
  t.is(sets.version, version);
  t.deepEqual(sets.add([set(3), set(1, 7)]), [set(3), set(1, 7)]);
  t.deepEqual(all(sets), [set(1, 7), set(2), set(3)]);
  t.deepEqual(all(sets, 1), [set(1, 7), set(3)]);
  t.deepEqual(sets.get(8, 1), set(1, 7));
  t.deepEqual(sets.add([set(1)]), [set(1)]);
  t.is(sets.get(7, 1), undefined);
});

test('parameter sets that take too much memory are forgotten, the oldest first, and one that is too long is rejected', (t) => {
  const large = (id: number, bytes = 8000) => Buffer.concat([set(id), Buffer.alloc(bytes, id)]);
  const ids = Array.from({ length: 10 }, (_, id) => id + 1);
  const sets = setsOf(...ids.map((id) => large(id)));
  t.deepEqual(
    sets.all(8).map(({ id }) => id),
    ids.slice(-8),
  );
  t.deepEqual(sets.add([large(1)]).length, 1);
  t.throws(() => sets.add([large(2, 9000)]), { instanceOf: BitstreamError });
});

test('bits without those of ids', (t) => {
  const nal = Buffer.from('67ff00000301a0', 'hex');
  const hex = (ids: [number, number][]) => Buffer.from(withoutIds(nal, ids), 'latin1').toString('hex');
  t.is(hex([]), '67ff000001a0');
  t.is(hex([[8, 16]]), '67000001a0');
  t.is(
    hex([
      [8, 12],
      [16, 20],
    ]),
    '67f00001a0',
  );
});

test('many parameter sets that are there already cost no more than few', (t) => {
  const cost = (kept: number): number => {
    const sets = setsOf(...Array.from({ length: kept }, (_, id) => set(id)));
    const found = Array.from({ length: 1000 }, () => set(kept - 1));
    return costOf(() => {
      for (let picture = 0; picture < 20; picture++) sets.add(found);
    });
  };
  const usual = cost(1);
  const ratio = cost(255) / usual;
  t.true(ratio < 30, `${ratio.toFixed(1)} times as much`);
});
