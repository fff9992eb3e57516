import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';

const ROOT = join(import.meta.dirname, '../../..');
const FILES = [
  'CHANGELOG.md',
  'README.md',
  'package-lock.json',
  'deploy/Dockerfile',
  'deploy/helm/kiln/Chart.yaml',
  'deploy/kubernetes/kustomization.yaml',
  'docs/install.md',
];
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const [major = '', minor = ''] = version.split('.');
const NEXT = `${major}.${Number(minor) + 1}.0`;

/** A repository of what a release changes, with something to release. */
function repository(t: ExecutionContext, check = 'true') {
  const path = mkdtempSync(join(tmpdir(), 'kiln-release-'));
  t.teardown(() => rmSync(path, { recursive: true }));
  const git = (...args: string[]) => execFileSync('git', ['-C', path, ...args], { encoding: 'utf8' }).trim();
  const text = (file: string) => readFileSync(join(path, file), 'utf8');
  for (const file of FILES) cpSync(join(ROOT, file), join(path, file));
  writeFileSync(
    join(path, 'package.json'),
    JSON.stringify({ name: 'kiln', version, scripts: { check } }, undefined, 2),
  );
  writeFileSync(
    join(path, 'CHANGELOG.md'),
    text('CHANGELOG.md').replace('## [Unreleased]\n', '## [Unreleased]\n\n### Removed\n\n- Something old.\n'),
  );
  git('init', '-q');
  for (const [key, value] of [
    ['user.name', 'a'],
    ['user.email', 'a@example.com'],
    ['commit.gpgsign', 'false'],
  ] as const)
    git('config', key, value);
  git('add', '.');
  git('commit', '-q', '-m', 'one');
  const release = (...args: string[]) =>
    spawnSync(process.execPath, [join(ROOT, 'deploy/release.ts'), ...args], { cwd: path, encoding: 'utf8' });
  return { path, git, text, release };
}

test('a release is one commit that has the version everywhere, and no tag', (t) => {
  const { git, text, release } = repository(t);
  const { status, stdout, stderr } = release(NEXT);
  t.is(status, 0, stderr);
  t.is(git('log', '-1', '--format=%s'), `Release ${NEXT}`);
  t.is(git('status', '--porcelain'), '');
  t.is(git('tag'), '');
  t.deepEqual(git('diff', '--name-only', 'HEAD~').split('\n').toSorted(), [...FILES, 'package.json'].toSorted());
  t.is((JSON.parse(text('package.json')) as { version: string }).version, NEXT);
  const lock = JSON.parse(text('package-lock.json')) as {
    version: string;
    packages: Record<string, { version: string }>;
  };
  t.deepEqual([lock.version, lock.packages['']?.version], [NEXT, NEXT]);
  t.is(git('diff', '--numstat', 'HEAD~', '--', 'package-lock.json').split('\t')[0], '2', 'and of no other package');
  t.regex(text('deploy/helm/kiln/Chart.yaml'), new RegExp(`^version: ${NEXT}\nappVersion: ${NEXT}$`, 'm'));
  t.true(text('docs/install.md').includes(`registry.example.com/kiln:${NEXT} `));
  for (const file of ['README.md', 'docs/install.md']) t.true(text(file).includes(`kiln-${NEXT}.tgz`), file);
  t.true(text('deploy/Dockerfile').includes(`registry.example.com/kiln:${NEXT} `));
  t.is(text('deploy/kubernetes/kustomization.yaml').split(`newTag: '${NEXT}'`).length, 3);
  t.regex(text('CHANGELOG.md'), new RegExp(`\n## \\[${NEXT}\\] - \\d{4}-\\d\\d-\\d\\d\n[^]*?\n- Something old\\.\n`));
  const hash = git('rev-parse', '--short', 'HEAD');
  t.true(stdout.includes(`git tag --annotate v${NEXT} --message 'Kiln ${NEXT}' ${hash}\n`), stdout);
  t.true(stdout.includes(`registry.example.com/kiln:${NEXT} `));
});

test('--dry-run changes nothing', (t) => {
  const { git, release } = repository(t);
  const { status, stdout } = release(NEXT, '--dry-run');
  t.is(status, 0);
  t.regex(stdout, /release: would change CHANGELOG\.md, package\.json, /);
  t.is(git('status', '--porcelain'), '');
  t.is(git('rev-list', '--count', 'HEAD'), '1');
});

test('a release without a green check is refused, and leaves nothing changed', (t) => {
  const { git, release } = repository(t, 'false');
  for (const args of [[NEXT], [NEXT, '--dry-run']]) {
    const { status, stderr } = release(...args);
    t.is(status, 1);
    t.regex(stderr, /^release: `npm run check` is not green: nothing is released$/m);
    t.is(git('status', '--porcelain'), '');
    t.is(git('rev-list', '--count', 'HEAD'), '1');
  }
});

test('a release that cannot be made is refused in one line', (t) => {
  const { path, git, release } = repository(t);
  const refused = (...args: string[]) => {
    const { status, stderr } = release(...args);
    t.is(status, 1);
    return stderr;
  };
  for (const args of [[], ['next'], ['1.2'], [NEXT, NEXT]])
    t.is(refused(...args), 'release: usage: npm run release -- VERSION [--dry-run]\n');
  for (const old of [version, '0.0.9']) t.is(refused(old), `release: ${old} is not later than ${version}\n`);
  git('tag', `v${NEXT}`);
  t.is(refused(NEXT), `release: there is a tag v${NEXT} already\n`);
  git('tag', '--delete', `v${NEXT}`);
  writeFileSync(join(path, 'new'), '');
  t.is(refused(NEXT), 'release: commit or remove first what `git status` lists\n');
});
