import { execFile } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { writeScript } from '../../support/programs/script.ts';

const run = promisify(execFile);
const SETUP = join(import.meta.dirname, '../../../deploy/setup');

/** The part of deploy/setup that tells what happens, around a step of some seconds. */
async function scriptOf(t: ExecutionContext, seconds: number): Promise<string> {
  const text = await readFile(SETUP, 'utf8');
  const telling = text.slice(text.indexOf('begin() {'), text.indexOf('give_up() {'));
  const folder = await mkdtemp(join(tmpdir(), 'kiln-setup-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'step.sh');
  await writeFile(file, `set -euo pipefail\n${telling}\nbegin step 'working'\nsleep ${seconds}\nend\n`);
  return file;
}

test('a long step shows its time on a terminal', async (t) => {
  const file = await scriptOf(t, 8);
  const { stdout } = await run('script', ['--quiet', '--return', '--flush', '--command', `bash ${file}`, '/dev/null']);
  t.regex(stdout, /^setup: step +working \.\.\. \d+ s [\b ]+.*done in \d+ s\r\n$/);
});

test('a step is one plain line in a log', async (t) => {
  const file = await scriptOf(t, 7);
  const { stderr } = await run('bash', [file]);
  t.regex(stderr, /^setup: step +working \.\.\. done in \d+ s\n$/);
});

/** Runs steps of deploy/setup where none of its packages is installed, as a user who cannot install them. */
async function withoutRights(t: ExecutionContext, steps: string): Promise<string> {
  const text = await readFile(SETUP, 'utf8');
  const part = (from: string, to: string) => text.slice(text.indexOf(from), text.indexOf(to));
  const folder = await mkdtemp(join(tmpdir(), 'kiln-setup-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const programs = { 'dpkg-query': 'exit 1', 'apt-get': 'exit 1', id: 'echo 1000', sudo: 'exit 1', ldconfig: 'exit 0' };
  for (const [name, script] of Object.entries(programs)) {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(folder, name), 0o755);
  }
  const functions = [
    part('there() {', 'logged() {'),
    part('# --- Debian packages', '# --- npm packages'),
    part('# --- Libraries that Kiln', '# ---\n'),
  ];
  const script = `set -euo pipefail\nquiet=false stamps=${folder}\n${functions.join('\n')}\n${steps}\n`;
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
  return run('bash', ['-c', script], { env }).then(
    ({ stderr }) => stderr,
    ({ stderr }: { stderr: string }) => stderr,
  );
}

test('a package that cannot be installed is named, with how to install it', async (t) => {
  t.is(
    await withoutRights(t, "need worker 'g++' libsrtp2-1 libssl3"),
    `setup: The step "worker" needs packages that are missing, and installing packages needs root or sudo. On Debian, as root:
setup:   apt-get install --no-install-recommends libsrtp2-1 libssl3
setup: Then start this again.
`,
  );
});

test('a library that Kiln can run without is named if it cannot be installed', async (t) => {
  t.is(
    await withoutRights(t, "get_library srt libsrt1.5-gnutls 'SRT is off'"),
    'setup: srt       libsrt1.5-gnutls is not installed, and installing packages needs root or sudo: Kiln runs without it, ' +
      'but SRT is off. As root: apt-get install --no-install-recommends libsrt1.5-gnutls\n',
  );
});

const WORKER = 'node_modules/mediasoup/worker/out/Release/mediasoup-worker';

/** A tree in which nothing is missing, and its set-up. */
async function wholeTree(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-setup-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const at = (path: string) => join(folder, path);
  for (const path of ['deploy/mediasoup', 'node_modules/.bin', 'node_modules/ffmpeg-static', dirname(WORKER), 'bin'])
    await mkdir(at(path), { recursive: true });
  await copyFile(SETUP, at('deploy/setup'));
  await writeFile(at('deploy/build-mediasoup-worker'), '');
  for (const lock of ['package-lock.json', 'node_modules/.package-lock.json'])
    await writeFile(at(lock), '{"packages":{}}');
  symlinkSync(process.execPath, at('node_modules/.bin/node'));
  const worker = `echo asked >>${at('asked')}; exit 41`;
  writeScript(at(WORKER), worker);
  await writeFile(at(`${WORKER}.recipe`), 'fetched\n');
  for (const path of ['node_modules/ffmpeg-static/ffmpeg', 'bin/ffmpeg']) writeScript(at(path), 'exit 0');
  writeScript(at('deploy/build'), `echo built >>${at('built')}`);
  writeScript(at('bin/ldconfig'), "echo '\tlibsrt-gnutls.so.1.5 (libc6)'; echo '\tlibjemalloc.so.2 (libc6)'");
  const env = { ...process.env, PATH: `${at('bin')}:${process.env.PATH}`, XDG_CACHE_HOME: at('cache') };
  const lines = (name: string) => (existsSync(at(name)) ? readFileSync(at(name), 'utf8').split('\n').length - 1 : 0);
  return {
    at,
    worker,
    /** @returns its output, and whether it asked the worker and wrote dist/ */
    setUp: async (args: readonly string[], more: NodeJS.ProcessEnv = {}) => {
      const before = { asked: lines('asked'), built: lines('built') };
      const { stderr } = await run(at('deploy/setup'), args, { env: { ...env, ...more } });
      return { stderr, asks: lines('asked') > before.asked, builds: lines('built') > before.built };
    },
  };
}

/** When packages of the system came or went the last time, which they may do during a test. */
function systemChanges(): string {
  const files = ['/etc/ld.so.cache', '/var/lib/dpkg/status'].filter(existsSync);
  return files.map((file) => statSync(file).ctimeMs).join();
}

test('a set-up asks again only after a change of what it depends on', async (t) => {
  const { at, worker, setUp } = await wholeTree(t);
  const QUIET = ['--quiet'];
  const knows = async (env?: NodeJS.ProcessEnv) => {
    for (;;) {
      const before = systemChanges();
      const first = await setUp(QUIET, env);
      // finds what was put right by the one before
      await setUp(QUIET, env);
      const last = await setUp(QUIET, env);
      if (systemChanges() !== before) continue;
      t.deepEqual(last, { stderr: '', asks: false, builds: true });
      return !first.asks;
    }
  };
  t.false(await knows(), 'the first time');
  t.true(await knows());
  const other = writeScript(at('bin/other-worker'), worker);
  const changes: Readonly<Record<string, () => NodeJS.ProcessEnv | void>> = {
    'a lock file of the same time': () => {
      const { atime, mtime } = statSync(at('package-lock.json'));
      writeFileSync(at('package-lock.json'), '{ "packages":{}}');
      utimesSync(at('package-lock.json'), atime, mtime);
    },
    'npm ci': () => writeFileSync(at('node_modules/.package-lock.json'), '{"packages":{}}'),
    'another Node': () => {
      unlinkSync(at('node_modules/.bin/node'));
      writeScript(at('node_modules/.bin/node'), `exec ${process.execPath} "$@"`);
    },
    'another worker': () => void writeScript(at(WORKER), worker),
    'a worker that was not built here': () => ({ MEDIASOUP_WORKER_BIN: other }),
    'another ffmpeg': () => ({ KILN_FFMPEG: at('bin/ffmpeg') }),
    'another set-up': () => appendFileSync(at('deploy/setup'), '# changed\n'),
  };
  for (const [name, change] of Object.entries(changes)) {
    const env = change() ?? undefined;
    t.false(await knows(env), name);
    t.true(await knows(env), name);
  }
});

test('one that is to tell what is there asks each time', async (t) => {
  const { setUp } = await wholeTree(t);
  await setUp(['--quiet']);
  const { stderr, asks, builds } = await setUp([]);
  t.true(asks && builds);
  t.deepEqual(
    [...stderr.matchAll(/^setup: (\w+)/gm)].map(([, step]) => step),
    ['packages', 'node', 'worker', 'ffmpeg'],
  );
});
