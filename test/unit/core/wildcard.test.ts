import test from 'ava';
import { wildcard } from '../../../src/core/wildcard.ts';

const cases: [pattern: string, text: string, matches: boolean][] = [
  ['*', '', true],
  ['*', 'any.thing', true],
  ['a.example', 'A.Example', true],
  ['a.example', 'aXexample', false],
  ['a.example', 'a.example.evil', false],
  ['*.example', 'a.b.example', true],
  ['*.example', '.example', true],
  ['*.example', 'example', false],
  ['a?', 'ab', true],
  ['a?', 'a', false],
  ['a?', 'abc', false],
  ['a**b', 'ab', true],
  ['[a](b)+{1}^$|\\', '[a](b)+{1}^$|\\', true],
  ['[ab]', 'a', false],
  ['', '', true],
  ['', 'a', false],
  ['*', 'x'.repeat(512), true],
  ['*', 'x'.repeat(513), false],
];

for (const [pattern, text, matches] of cases) {
  test(`"${pattern}" ${matches ? 'is' : 'is not'} "${text.slice(0, 20)}" of ${text.length}`, (t) => {
    t.is(wildcard(pattern).test(text), matches);
  });
}

test('a prefix comes before the pattern and only there', (t) => {
  t.true(wildcard('a.example', 'https?://').test('http://a.example'));
  t.false(wildcard('a.example', 'https?://').test('a.example'));
  t.false(wildcard('a.example', 'https?://').test('xhttp://a.example'));
});

test('many wildcards take no long time on long text', (t) => {
  t.false(wildcard('*a*a*a*a*a*b').test('a'.repeat(16_384)));
});
