import test from 'ava';
import { evaluate } from '../../../src/config/arithmetic.ts';

const SIZE = { MAIN_W: 640, MAIN_H: 360 };

test('expressions of lengths are evaluated', (t) => {
  const cases: Record<string, number> = {
    '10': 10,
    '0.5': 0.5,
    '.5': 0.5,
    '-10': -10,
    ' 1 + 2 * 3 ': 7,
    '(1+2)*3': 9,
    '8/2/2': 2,
    '8-2-2': 4,
    '2--3': 5,
    MAIN_W: 640,
    'main_w-MAIN_H': 280,
    '(MAIN_W - 64) / 2': 288,
    '-(MAIN_H)': -360,
  };
  for (const [text, value] of Object.entries(cases)) t.is(evaluate(text, SIZE), value, text);
});

test('text that is no arithmetic is rejected', (t) => {
  const wrong = [
    '',
    ' ',
    'ten',
    '10px',
    '1 2',
    '1+',
    '*1',
    '(1',
    '1)',
    '()',
    '1/0',
    '0/0',
    'MAIN_X',
    'constructor',
    '__proto__',
    '1;2',
    '10:y=0',
    'MAIN_W,crop',
    '1e999',
    "'1'",
    '('.repeat(300),
    '-'.repeat(200),
    `${'('.repeat(100)}1${')'.repeat(100)}`,
  ];
  for (const text of wrong) t.is(evaluate(text, SIZE), undefined, text);
});

test('an expression as deep as the longest text can be is evaluated', (t) => {
  t.is(evaluate(`${'('.repeat(99)}7${')'.repeat(99)}`, SIZE), 7);
});
