import test from 'ava';
import { costLine, rateLine, ratioOf } from '../../bench/ratio.ts';

const compared = { what: 'CPU per stream', unit: '%', digits: 1, of: 'bare TCP relay' };
const ones = [1, 1, 1, 1, 1];

test('a ratio is the median of those of all rounds, each of one time', (t) => {
  // a machine that was busy in two rounds was so for both sides
  const ratio = ratioOf({ what: 'CPU', values: [2, 20, 4, 40, 3], references: [1, 10, 1, 10, 1] });
  t.is(ratio, 3);
});

test('one round that went wrong does not decide', (t) => {
  t.is(ratioOf({ what: 'CPU', values: [2, 2, 90, 2, 2], references: ones }), 2);
  t.is(ratioOf({ what: 'CPU', values: [2, 2, 2, 2, 2], references: [1, 1, 1, 0.01, 1] }), 2);
});

test('fewer than five rounds are not judged, more are', (t) => {
  const four = { what: 'CPU', values: [1, 1, 1, 1], references: [1, 1, 1, 1] };
  t.throws(() => ratioOf(four), { message: '4 rounds instead of 5: CPU' });
  t.is(ratioOf({ what: 'CPU', values: [...ones, 3, 3], references: [...ones, 1, 1] }), 1);
});

test('a round without a value or a reference fails', (t) => {
  const message = 'no ratio in some round: CPU';
  t.throws(() => ratioOf({ what: 'CPU', values: ones, references: [1, 1, 1, 1] }), { message });
  t.throws(() => ratioOf({ what: 'CPU', values: ones, references: [1, 1, 0, 1, 1] }), { message });
  t.throws(() => ratioOf({ what: 'CPU', values: [1, 1, Number.NaN, 1, 1], references: ones }), { message });
});

test('a cost may be a quarter more than what was reached', (t) => {
  const line = (value: number) =>
    costLine({ ...compared, values: ones.map(() => value), references: ones, reached: 2 });
  t.deepEqual(line(2.5), {
    what: 'CPU per stream',
    measured: '2.5 %, 2.50 times',
    reference: 'bare TCP relay 1.0 %',
    budget: '<= 2.50 times',
    met: true,
  });
  t.false(line(2.51).met);
});

test('a budget of the cost itself is held, too', (t) => {
  const line = (value: number, reference: number) =>
    costLine({
      ...compared,
      values: ones.map(() => value),
      references: ones.map(() => reference),
      reached: 2,
      most: 0.7,
    });
  t.is(line(0.7, 1).budget, '<= 2.50 times, 0.7 %');
  t.true(line(0.7, 1).met);
  t.false(line(0.71, 1).met);
  t.false(line(0.7, 0.2).met);
});

test('a rate may be what was reached by 1.25', (t) => {
  const line = (value: number) =>
    rateLine({ ...compared, unit: '/s', values: ones.map(() => value), references: ones, reached: 0.75 });
  t.is(line(0.6).budget, '>= 0.60 of it');
  t.is(line(0.6).measured, '0.6 /s, 0.60 of it');
  t.true(line(0.6).met);
  t.false(line(0.59).met);
});

test('a line without budgets is not judged, and tells what else was measured', (t) => {
  const line = { ...compared, values: [3, 3, 3, 3, 3], references: ones, note: '9 requests' };
  t.deepEqual(costLine(line), {
    what: 'CPU per stream',
    measured: '3.0 %, 3.00 times',
    reference: 'bare TCP relay 1.0 %; 9 requests',
  });
  t.is(rateLine(line).met, undefined);
});
