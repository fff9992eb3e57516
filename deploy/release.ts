// Commits a release: its version, and its heading in CHANGELOG.md. Tagging and pushing stay manual steps, which it prints.
//
//   npm run release -- VERSION [--dry-run]
//
//   --dry-run  checks everything and changes nothing
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { argv, exit, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { releaseChangelog } from './changelog.ts';

const EXIT_FAILED = 1;
const VERSION = /^\d+\.\d+\.\d+$/;
const ARTIFACT = /(?<=example\.com\/kiln:|kiln-)\d+\.\d+\.\d+/g;
/** Where the version stands. */
const PLACES: Readonly<Record<string, RegExp>> = {
  'package.json': /(?<="name": "kiln",\n\s*"version": ")[^"]+/g,
  'package-lock.json': /(?<="name": "kiln",\n\s*"version": ")[^"]+/g,
  'deploy/helm/kiln/Chart.yaml': /(?<=^(?:version|appVersion): ).+$/gm,
  'deploy/kubernetes/kustomization.yaml': /(?<=newTag: ')[^']+/g,
  'deploy/Dockerfile': ARTIFACT,
  'README.md': ARTIFACT,
  'docs/install.md': ARTIFACT,
};

try {
  const { values, positionals } = parseArgs({
    args: argv.slice(2),
    options: { 'dry-run': { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  release(positionals, values['dry-run']);
} catch (error) {
  stderr.write(`release: ${(error as Error).message}\n`);
  exit(EXIT_FAILED);
}

function release([version = '', ...more]: readonly string[], isDry: boolean): void {
  if (!VERSION.test(version) || more.length > 0) throw new Error('usage: npm run release -- VERSION [--dry-run]');
  const { version: former } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  if (!isLater(version, former)) throw new Error(`${version} is not later than ${former}`);
  if (git('status', '--porcelain') !== '') throw new Error('commit or remove first what `git status` lists');
  if (git('tag', '--list', `v${version}`) !== '') throw new Error(`there is a tag v${version} already`);
  const today = new Date().toISOString().slice(0, 10);
  const changed: Record<string, string> = {
    'CHANGELOG.md': releaseChangelog(readFileSync('CHANGELOG.md', 'utf8'), version, today),
  };
  for (const [file, place] of Object.entries(PLACES)) {
    const text = readFileSync(file, 'utf8');
    if (text.match(place)?.includes(former) !== true) throw new Error(`${file} does not have the version ${former}`);
    changed[file] = text.replace(place, version);
  }
  const files = Object.keys(changed);
  if (isDry) {
    check();
    stdout.write(`release: would change ${files.join(', ')} and commit them\n`);
    return;
  }
  for (const [file, text] of Object.entries(changed)) writeFileSync(file, text);
  try {
    check();
  } catch (error) {
    git('checkout', '--', ...files);
    throw error;
  }
  git('commit', '--quiet', '--message', `Release ${version}`, '--', ...files);
  const commit = git('rev-parse', '--short', 'HEAD');
  stdout.write(`release: committed ${version} as ${commit}. When it is on the main branch:

  git tag --annotate v${version} --message 'Kiln ${version}' ${commit}
  git push origin v${version}
  npm run pack                                    # kiln-${version}.tgz
  docker buildx build -f deploy/Dockerfile --platform linux/amd64,linux/arm64 \\
    --build-arg GIT_VERSION="$(git describe --tags --long --always)" -t registry.example.com/kiln:${version} --push .
`);
}

function isLater(version: string, former: string): boolean {
  return version.localeCompare(former, 'en', { numeric: true }) > 0;
}

function check(): void {
  const { status } = spawnSync('npm', ['run', 'check'], { stdio: 'inherit' });
  if (status !== 0) throw new Error('`npm run check` is not green: nothing is released');
}

function git(...args: string[]): string {
  return execFileSync('git', args, { encoding: 'utf8' }).trim();
}
