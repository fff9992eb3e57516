// Writes kiln-VERSION.tgz, the npm package: what runs, and the set-up for what it needs. Run it by `npm run pack`.
//
//   npm run pack [-- FOLDER]
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { argv, stdout } from 'node:process';
import { manifests, PACKED, type Lock, type Manifest } from './package.ts';
import { readVersion } from '../src/version.ts';

const ROOT = join(import.meta.dirname, '..');
const target = resolve(argv[2] ?? '.');
const stage = mkdtempSync(join(tmpdir(), 'kiln-pack-'));
const app = join(stage, 'app');

try {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
  const { outer, app: inner, lock } = manifests(read('package.json') as Manifest, read('package-lock.json') as Lock);
  for (const path of PACKED) cpSync(join(ROOT, path), join(app, path), { recursive: true, filter: isPacked });
  for (const file of ['LICENSE', 'README.md']) cpSync(join(ROOT, file), join(stage, file));
  write('package.json', outer);
  write('app/package.json', inner);
  write('app/package-lock.json', lock);
  writeFileSync(join(app, 'GIT_VERSION'), `${(await readVersion()).gitVersion}\n`);
  packWorker();
  execFileSync(process.execPath, [join(ROOT, 'deploy/build.ts'), join(app, 'dist')], { stdio: 'inherit' });
  mkdirSync(target, { recursive: true });
  execFileSync('npm', ['pack', '--silent', '--pack-destination', target], { cwd: stage });
  stdout.write(`${join(target, `${outer.name}-${outer.version}.tgz`)}\n`);
} finally {
  rmSync(stage, { recursive: true, force: true });
}

function write(file: string, content: unknown): void {
  writeFileSync(join(stage, file), `${JSON.stringify(content, undefined, 2)}\n`);
}

/** Leaves out state, media and keys that runs and tests put into config/. */
function isPacked(path: string): boolean {
  return !['api_data', 'media'].includes(basename(path)) && !/\.(log|crt|key|pem)$/.test(path);
}

/** The worker that was built here, by the name that the set-up looks for: machines like this one need not build it. */
function packWorker(): void {
  const worker = join(ROOT, 'node_modules/mediasoup/worker/out/Release/mediasoup-worker');
  const recipe = existsSync(`${worker}.recipe`) ? readFileSync(`${worker}.recipe`, 'utf8').trim() : 'fetched';
  if (recipe === 'fetched') {
    stdout.write('without a mediasoup-worker: none was built here\n');
    return;
  }
  const { version } = JSON.parse(readFileSync(join(ROOT, 'node_modules/mediasoup/package.json'), 'utf8')) as Manifest;
  const machine = execFileSync('uname', ['-m'], { encoding: 'utf8' }).trim();
  cpSync(worker, join(app, `deploy/mediasoup-worker-${version}-${machine}-${recipe}`));
}
