import test from 'ava';
import { Rejections, type Rejection } from '../../../cluster/rejections.ts';
import { Signatures } from '../../../cluster/redis/signatures.ts';

test('an entry is valid in its cluster, under its key, at its revision and with its value only', (t) => {
  const signatures = new Signatures('kiln', ['secret']);
  const signed = signatures.signEntry('a/b', 7, '{"x":"1 2"}');
  t.deepEqual(signatures.readEntry('a/b', `7 ${signed}`), { revision: 7, value: '{"x":"1 2"}', needsSigning: false });
  for (const [other, key, text] of [
    [new Signatures('another', ['secret']), 'a/b', `7 ${signed}`],
    [new Signatures('kiln', ['another']), 'a/b', `7 ${signed}`],
    [signatures, 'a/c', `7 ${signed}`],
    [signatures, 'a/b', `8 ${signed}`],
    [signatures, 'a/b', `07 ${signed}`],
    [signatures, 'a/b', `7 ${signed} `],
    [signatures, 'a/b', `7 ${signed.replace('{', '[')}`],
    [signatures, 'a/b', '7 {"x":"1 2"}'],
    [signatures, 'a/b', `7 ${signatures.signRow('a/b', '7', '{"x":"1 2"}')}`],
    [signatures, 'a/b', ''],
    [signatures, 'a/b', '7'],
  ] as const) {
    t.is(other.readEntry(key, text), undefined, text);
  }
});

test('a row is valid for one life of one node', (t) => {
  const signatures = new Signatures('kiln', ['secret']);
  const signed = signatures.signRow('a', '1', '{}');
  t.is(signatures.readRow('a', '1', signed), '{}');
  for (const [id, incarnation, text] of [
    ['b', '1', signed],
    ['a', '2', signed],
    ['a', '1', `${signed}}`],
    ['a', '1', '{}'],
    ['a', '1', ''],
  ] as const) {
    t.is(signatures.readRow(id, incarnation, text), undefined);
  }
});

test('entries signed with either secret are valid while it is changed, and dated where only the former signed', (t) => {
  const [former, both, present] = [['old'], ['new', 'old'], ['new']].map(
    (secrets) => new Signatures('kiln', secrets),
  ) as [Signatures, Signatures, Signatures];
  const [byFormer, byBoth] = [`1 ${former.signEntry('k', 1, '1')}`, `1 ${both.signEntry('k', 1, '1')}`];
  t.like(both.readEntry('k', byFormer), { needsSigning: true });
  t.like(both.readEntry('k', byBoth), { needsSigning: false });
  t.like(former.readEntry('k', byBoth), { revision: 1 });
  t.like(present.readEntry('k', byBoth), { revision: 1 });
  t.is(present.readEntry('k', byFormer), undefined);
});

test('some of thousands of entries that are rejected at once are reported, of each kind', (t) => {
  const reports: Rejection[] = [];
  const rejections = new Rejections((report) => reports.push(report));
  for (let n = 0; n < 10_000; n++) rejections.refuse('entries', `e${n}`, 'why');
  rejections.refuse('rows', 'a', 'why');
  t.deepEqual(
    reports.map(({ name }) => name),
    [...Array.from({ length: 20 }, (_, n) => `e${n}`), 'a'],
  );
  t.deepEqual(rejections.counts, { entries: 1000, rows: 1, certificates: 0 });
});

test('rejected entries are counted while they are rejected, and reported once', (t) => {
  const reports: Rejection[] = [];
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
