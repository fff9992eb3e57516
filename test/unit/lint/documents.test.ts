import test from 'ava';
import { commentFaults, faults } from '../../lint/documents.ts';

const present = new Set(['LICENSE', 'docs/play.md', 'src/core', 'src/core/']);
const surroundings = {
  exists: (path: string) => present.has(path),
  read: (path: string) => `# Play\n## In a browser\n${path}`,
  scripts: new Set(['start', 'check']),
};
const check = (text: string) => faults('README.md', text, surroundings);
const commands = (...lines: string[]) => ['```sh run', ...lines, '```', ''].join('\n');

test('links and commands that exist pass the check of documents', (t) => {
  t.deepEqual(
    check(
      [
        '# Kiln runs: a title',
        '[up](#kiln-runs-a-title) [licence](LICENSE) [elsewhere](https://example.com/none)',
        '[play](docs/play.md#in-a-browser)',
        '`src/core/` `npm start -- --demo` `npm run check` `npm ci`',
      ].join('\n'),
    ),
    [],
  );
});

for (const [text, lost] of [
  ['[licence](LICENCE)', 'LICENCE'],
  ['[up](#nowhere)', '#nowhere'],
  ['[play](docs/play.md#nowhere)', 'docs/play.md#nowhere'],
  ['`src/cores/`', 'src/cores/'],
  ['`grafana/none.yml`', 'grafana/none.yml'],
  ['`docs/none.md`', 'docs/none.md'],
  ['`npm run chek`', 'npm run chek'],
] as const) {
  test(`${text} is a fault`, (t) => {
    t.deepEqual(check(text), [`README.md: there is no ${lost}`]);
  });
}

test('a variable of commands is set on the page, above', (t) => {
  const use = 'curl -u $token $api/v1 -d \'{"$name": 1}\' "$KILN_KEY"';
  t.deepEqual(check(commands('api=http://localhost:8081 token=kiln:secret', use)), []);
  t.deepEqual(check(commands('api=http://localhost token=a:b') + commands(use)), []);
  t.deepEqual(check(commands(use) + commands('api=http://localhost token=a:b')), [
    'README.md: commands use $token, which the page has not set',
    'README.md: commands use $api, which the page has not set',
  ]);
});

test('comments of sources refer to what exists', (t) => {
  const source = (comment: string) => `/** ${comment} */\nconst url = 'docs/none.md'; // ${comment}\n`;
  const lost = (comment: string) => commentFaults('src/a.ts', source(comment), surroundings);
  t.deepEqual(lost('Plays (docs/play.md#in-a-browser), see `src/core/` and https://example.com/docs/none.md.'), []);
  for (const target of ['facts/05-hls.md', 'docs/play.md#nowhere', 'PLAY.md'])
    t.deepEqual(lost(`Plays (${target}).`), [`src/a.ts: there is no ${target}`, `src/a.ts: there is no ${target}`]);
  t.deepEqual(lost('In `src/cores/`.').length, 2);
});
