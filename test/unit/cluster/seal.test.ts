import test from 'ava';
import { Rejections, type DistrustReport } from '../../../cluster/rejections.ts';
import { Seal } from '../../../cluster/redis/seal.ts';

test('an entry is valid in its cluster, under its key, at its revision and with its value only', (t) => {
  const seal = new Seal('kiln', ['secret']);
  const sealed = seal.entry('a/b', 7, '{"x":"1 2"}');
  t.deepEqual(seal.openEntry('a/b', `7 ${sealed}`), { revision: 7, value: '{"x":"1 2"}', isDated: false });
  for (const [other, key, text] of [
    [new Seal('another', ['secret']), 'a/b', `7 ${sealed}`],
    [new Seal('kiln', ['another']), 'a/b', `7 ${sealed}`],
    [seal, 'a/c', `7 ${sealed}`],
    [seal, 'a/b', `8 ${sealed}`],
    [seal, 'a/b', `07 ${sealed}`],
    [seal, 'a/b', `7 ${sealed} `],
    [seal, 'a/b', `7 ${sealed.replace('{', '[')}`],
    [seal, 'a/b', '7 {"x":"1 2"}'],
    [seal, 'a/b', `7 ${seal.row('a/b', '7', '{"x":"1 2"}')}`],
    [seal, 'a/b', ''],
    [seal, 'a/b', '7'],
  ] as const) {
    t.is(other.openEntry(key, text), undefined, text);
  }
});

test('a row is valid for one life of one node', (t) => {
  const seal = new Seal('kiln', ['secret']);
  const sealed = seal.row('a', '1', '{}');
  t.is(seal.openRow('a', '1', sealed), '{}');
  for (const [id, incarnation, text] of [
    ['b', '1', sealed],
    ['a', '2', sealed],
    ['a', '1', `${sealed}}`],
    ['a', '1', '{}'],
    ['a', '1', ''],
  ] as const) {
    t.is(seal.openRow(id, incarnation, text), undefined);
  }
});

test('while the secret is changed, entries are valid for nodes with either, and dated where only the former signed', (t) => {
  const [former, both, present] = [['old'], ['new', 'old'], ['new']].map((secrets) => new Seal('kiln', secrets)) as [
    Seal,
    Seal,
    Seal,
  ];
  const [byFormer, byBoth] = [`1 ${former.entry('k', 1, '1')}`, `1 ${both.entry('k', 1, '1')}`];
  t.like(both.openEntry('k', byFormer), { isDated: true });
  t.like(both.openEntry('k', byBoth), { isDated: false });
  t.like(former.openEntry('k', byBoth), { revision: 1 });
  t.like(present.openEntry('k', byBoth), { revision: 1 });
  t.is(present.openEntry('k', byFormer), undefined);
});

test('of thousands that are refused at once some are reported, of each kind', (t) => {
  const reports: DistrustReport[] = [];
  const rejections = new Rejections((report) => reports.push(report));
  for (let n = 0; n < 10_000; n++) rejections.refuse('entries', `e${n}`, 'why');
  rejections.refuse('rows', 'a', 'why');
  t.deepEqual(
    reports.map(({ name }) => name),
    [...Array.from({ length: 20 }, (_, n) => `e${n}`), 'a'],
  );
  t.deepEqual(rejections.counts, { entries: 1000, rows: 1, certificates: 0 });
});

test('what is refused is counted while it is, and reported once', (t) => {
  const reports: DistrustReport[] = [];
  const rejections = new Rejections((report) => reports.push(report));
  rejections.refuse('entries', 'a', 'why');
  rejections.refuse('entries', 'a', 'why');
  rejections.refuse('rows', 'a', 'why');
  t.deepEqual(rejections.counts, { entries: 1, rows: 1, certificates: 0 });
  rejections.trust('entries', 'a');
  rejections.refuse('entries', 'a', 'why');
  t.is(reports.length, 2, 'coming and going is one report');
  rejections.keepOnly('entries', new Set(['b']));
  t.deepEqual(rejections.counts, { entries: 0, rows: 1, certificates: 0 });
});
