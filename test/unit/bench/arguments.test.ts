import test from 'ava';
import { readArguments } from '../../bench/compare/arguments.ts';

const KNOWN = ['streams', 'start', 'api'];

test('a commit alone is compared by all measurements, five times', (t) => {
  t.deepEqual(readArguments(['HEAD~1'], KNOWN), { commit: 'HEAD~1', names: KNOWN, pairs: 5 });
});

test('measurements run once each, in the order of the table', (t) => {
  const { names } = readArguments(['abc', 'api', 'streams', 'api'], KNOWN);
  t.deepEqual(names, ['streams', 'api']);
});

test('the number of pairs may stand anywhere', (t) => {
  for (const args of [
    ['--pairs', '2', 'abc', 'api'],
    ['abc', '--pairs', '2', 'api'],
    ['abc', 'api', '--pairs', '2'],
  ]) {
    t.deepEqual(readArguments(args, KNOWN), { commit: 'abc', names: ['api'], pairs: 2 });
  }
});

test('missing or unknown arguments of the benchmark are rejected with the usage', (t) => {
  const cases: [args: string[], reason: RegExp][] = [
    [[], /^a commit is missing/],
    [['--pairs', '2'], /^a commit is missing/],
    [['abc', 'speed', 'api', 'size'], /^no such measurement: speed, size/],
    [['abc', '--pair', '2'], /^--pair is unknown/],
    ...['', '0', '-1', '1.5', '1000', 'api'].map((value): [string[], RegExp] => [
      ['abc', '--pairs', value],
      /^--pairs takes a number from 1 to 999/,
    ]),
    [['abc', '--pairs'], /^--pairs takes a number/],
  ];
  for (const [args, reason] of cases) {
    const error = t.throws(() => readArguments(args, KNOWN), { message: reason });
    t.regex(error?.message ?? '', /\nusage: .*<commit>.*\nmeasurements: streams, start, api$/);
  }
});
