import test from 'ava';
import { wildcard } from '../../../src/lib/wildcard.ts';
import { seeded } from '../codecs/vectors.ts';

test('stars, question marks, case, and characters that mean something elsewhere', (t) => {
  const matches: [pattern: string, yes: string[], no: string[]][] = [
    ['*', ['', 'anything'], []],
    ['a', ['a', 'A'], ['', 'ab', 'ba']],
    ['*.a.com', ['b.a.com', 'c.b.A.com', '.a.com'], ['a.com', 'b.a.com.org', 'bxa.com']],
    ['live*', ['live', 'live1'], ['alive', 'liv']],
    ['a*b*c', ['abc', 'aXbYc', 'abbcc', 'abcbc'], ['acb', 'ab', 'abcd']],
    ['*a*', ['a', 'bab'], ['bbb', '']],
    ['a**b', ['ab', 'acb'], ['a']],
    ['', [''], ['a']],
    ['[ab]', ['[ab]'], ['a']],
    ['e?ge', ['edge', 'e.ge'], ['ege', 'eddge']],
    ['*?', ['a', 'ab'], ['']],
    ['x[1]+(a|b)$^{2}\\', ['x[1]+(a|b)$^{2}\\'], ['x1a']],
  ];
  for (const [pattern, yes, no] of matches) {
    for (const text of yes) t.true(wildcard(pattern).test(text), `${pattern} is ${text}`);
    for (const text of no) t.false(wildcard(pattern).test(text), `${pattern} is not ${text}`);
  }
});

test('a wildcard can require a prefix that is a pattern', (t) => {
  const pattern = wildcard('*.example.com', '[a-z]+:\\/\\/');
  t.true(pattern.test('https://a.example.com'));
  t.false(pattern.test('a.example.com'));
  t.false(pattern.test('1https://a.example.com'));
});

test('the same answers as a plain regular expression', (t) => {
  const random = seeded(11);
  const upTo = (limit: number) => Math.floor(random() * limit);
  const letters = (alphabet: string, limit: number) =>
    Array.from({ length: upTo(limit) }, () => alphabet[upTo(alphabet.length)]).join('');
  for (let round = 0; round < 20_000; round++) {
    const pattern = letters('ab*?', 7);
    const text = letters('ab', 9);
    const plain = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('.*.*', '.*').replaceAll('?', '.')}$`);
    t.is(wildcard(pattern).test(text), plain.test(text), `${pattern} for ${text}`);
  }
});

test('a long text and many stars come to an end', (t) => {
  t.false(wildcard('*a*a*a*a*a*a*a*b').test('a'.repeat(100_000)));
  t.true(wildcard('*a*a*a*a*a*a*a*').test('a'.repeat(100_000)));
});
