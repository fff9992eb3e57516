import test from 'ava';
import { faults } from '../../lint/documents.ts';

const present = new Set(['LICENSE', 'src/core', 'src/core/']);
const check = (text: string) => faults('README.md', text, (path) => present.has(path), new Set(['start', 'check']));

test('what exists passes', (t) => {
  t.deepEqual(
    check(
      [
        '# Kiln runs: a title',
        '[up](#kiln-runs-a-title) [licence](LICENSE) [elsewhere](https://example.com/none)',
        '`src/core/` `npm start -- --demo` `npm run check` `npm ci`',
      ].join('\n'),
    ),
    [],
  );
});

for (const [text, lost] of [
  ['[licence](LICENCE)', 'LICENCE'],
  ['[up](#nowhere)', '#nowhere'],
  ['`src/cores/`', 'src/cores/'],
  ['`npm run chek`', 'npm run chek'],
] as const) {
  test(`${text} is a fault`, (t) => {
    t.deepEqual(check(text), [`README.md: there is no ${lost}`]);
  });
}
