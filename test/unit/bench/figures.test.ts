import test from 'ava';
import { cellsText, figure, HEADINGS, rowsOf, rowText, type Pair } from '../../bench/compare/figures.ts';

const cpu = (value: number) => figure('CPU per stream', '%', 2, value);
const pair = (tree: number, commit: number): Pair => ({ tree: [cpu(tree)], commit: [cpu(commit)] });

test('each side has the median of its runs, and the ratio is that of the medians', (t) => {
  const [row] = rowsOf([pair(0.5, 1), pair(0.9, 4), pair(0.6, 2)]);
  t.deepEqual(row?.tree, { median: 0.6, min: 0.5, max: 0.9 });
  t.deepEqual(row?.commit, { median: 2, min: 1, max: 4 });
  t.is(row?.ratio, 0.3);
});

test('an even number of runs has the mean of the two in the middle as median', (t) => {
  const [row] = rowsOf([pair(4, 1), pair(1, 1), pair(2, 1), pair(10, 1)]);
  t.deepEqual(row?.tree, { median: 3, min: 1, max: 10 });
});

test('figures are found by what they are of, in the order of the first run', (t) => {
  const size = (value: number) => figure('PSS', 'MiB', 0, value);
  const rows = rowsOf([
    { tree: [cpu(1), size(50)], commit: [size(100), cpu(2)] },
    { tree: [size(50), cpu(1)], commit: [size(100), cpu(2)] },
  ]);
  t.deepEqual(
    rows.map(({ what, ratio }) => [what, ratio]),
    [
      ['CPU per stream', 0.5],
      ['PSS', 0.5],
    ],
  );
});

test('a run without a value fails instead of being left out', (t) => {
  t.throws(() => rowsOf([pair(1, 1), { tree: [cpu(1)], commit: [] }]), { message: 'no value of: CPU per stream' });
  t.throws(() => rowsOf([pair(1, Number.NaN)]), { message: 'no value of: CPU per stream' });
});

test('the table shows medians, spread and ratio below their headings', (t) => {
  const [row] = rowsOf([pair(0.561, 0.93), pair(0.55, 0.9), pair(0.6, 1)]).map(rowText);
  const head = cellsText(HEADINGS);
  t.regex(row ?? '', /^CPU per stream +0\.56 % \(0\.55\.\.0\.60\) +0\.93 % \(0\.90\.\.1\.00\) +0\.60$/);
  t.is(row?.indexOf('0.56 %'), head.indexOf('working tree'));
  t.is(row?.indexOf('0.93 %'), head.indexOf('commit'));
});

test('a figure without a unit has none, and one of nothing has no ratio', (t) => {
  const [calls, lost] = rowsOf([
    {
      tree: [figure('calls', '', 0, 12_345), figure('lost', '', 0, 0)],
      commit: [figure('calls', '', 0, 10_000), figure('lost', '', 0, 0)],
    },
  ]).map(rowText);
  t.regex(calls ?? '', /^calls +12,345 \(12,345\.\.12,345\) +10,000 \(10,000\.\.10,000\) +1\.23$/);
  t.regex(lost ?? '', / -$/);
});
