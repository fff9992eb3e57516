import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { readVersion } from '../../src/version.ts';

function folder(t: ExecutionContext): string {
  const path = mkdtempSync(join(tmpdir(), 'kiln-version-'));
  t.teardown(() => rmSync(path, { recursive: true }));
  writeFileSync(join(path, 'package.json'), JSON.stringify({ version: '3.2.1' }));
  return path;
}

function git(path: string, ...args: string[]): string {
  const options = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false'];
  return execFileSync('git', ['-C', path, ...options, ...args], { encoding: 'utf8' }).trim();
}

test('a checkout counts its commits, from the tag of the version on when there is one', async (t) => {
  const path = folder(t);
  git(path, 'init', '-q');
  t.deepEqual(await readVersion(path), { version: '3.2.1', gitVersion: 'v3.2.1-0-g0000000' });
  git(path, 'commit', '-q', '--allow-empty', '-m', 'one');
  git(path, 'commit', '-q', '--allow-empty', '-m', 'two');
  const hash = () => git(path, 'rev-parse', '--short=7', 'HEAD');
  t.is((await readVersion(path)).gitVersion, `v3.2.1-2-g${hash()}`);
  git(path, 'tag', 'v3.2.1');
  git(path, 'commit', '-q', '--allow-empty', '-m', 'three');
  t.is((await readVersion(path)).gitVersion, `v3.2.1-1-g${hash()}`);
});

test('the version of a tree without a tag counts commits from the one that wrote the version', async (t) => {
  const path = folder(t);
  const write = (fields: object) => {
    writeFileSync(join(path, 'package.json'), JSON.stringify({ ...fields, type: 'module' }, undefined, 2));
    git(path, 'add', '.');
    git(path, 'commit', '-q', '-m', 'change');
  };
  git(path, 'init', '-q');
  write({ version: '3.2.0' });
  write({ version: '3.2.0', dependencies: { version: '1' } });
  write({ version: '3.2.1' });
  write({ version: '3.2.1', dependencies: { version: '2' } });
  git(path, 'commit', '-q', '--allow-empty', '-m', 'another');
  t.is((await readVersion(path)).gitVersion, `v3.2.1-2-g${git(path, 'rev-parse', '--short=7', 'HEAD')}`);
});

test('the version of a packaged copy is the one that was noted, and that of another copy is unknown', async (t) => {
  const path = folder(t);
  t.is((await readVersion(path)).gitVersion, 'v3.2.1-0-g0000000');
  writeFileSync(join(path, 'GIT_VERSION'), 'v3.2.1-9-gabcdef0\n');
  t.is((await readVersion(path)).gitVersion, 'v3.2.1-9-gabcdef0');
  writeFileSync(join(path, 'GIT_VERSION'), 'abcdef0\n');
  t.is((await readVersion(path)).gitVersion, 'v3.2.1-0-gabcdef0', 'of a checkout without tags');
});

test('the version of this tree is known', async (t) => {
  const { version, gitVersion } = await readVersion();
  t.regex(version, /^\d+\.\d+\.\d+$/);
  t.regex(gitVersion, /^v\d+\.\d+\.\d+-\d+-g[0-9a-f]{7,}$/);
});
