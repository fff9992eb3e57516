import { execFile, spawn } from 'node:child_process';
import { chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { freePorts } from '../support/network/ports.ts';
import { serverXml } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
/** Packages come from their registry, and a worker may have to be built. */
const PATIENCE_MS = 480_000;
/** `nobody`, as which root can start programs. */
const NOBODY = 65_534;
const users = process.getuid?.() === 0 ? ([undefined, NOBODY] as const) : ([undefined] as const);

const folder = mkdtempSync(join(tmpdir(), 'kiln-package-'));
const { stdout } = await run(process.execPath, [join(ROOT, 'deploy/pack.ts'), folder]);
const tarball = stdout.trim().split('\n').at(-1) ?? '';
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a command of the package by npx, from a folder that has nothing but the package, with an empty cache. */
function fresh(t: ExecutionContext, uid: number | undefined) {
  const home = mkdtempSync(join(tmpdir(), 'kiln-npx-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const work = join(home, 'work');
  mkdirSync(work);
  cpSync(tarball, join(work, basename(tarball)));
  if (uid !== undefined) for (const path of [home, work]) chownSync(path, uid, uid);
  const PATH = (process.env.PATH ?? '')
    .split(':')
    .filter((path) => !path.includes('node_modules'))
    .join(':');
  const env = {
    PATH,
    HOME: home,
    npm_config_cache: join(home, 'cache'),
    npm_config_update_notifier: 'false',
    KILN_ACCESS_TOKEN: 'x',
  };
  const args = (command: readonly string[]) => ['--yes', '--package', `./${basename(tarball)}`, ...command];
  const user = uid === undefined ? {} : { uid, gid: uid };
  return {
    home,
    work,
    ends: (...command: string[]) => run('npx', args(command), { cwd: work, env, ...user }),
    start: (...command: string[]) => spawn('npx', args(command), { cwd: work, env, ...user, detached: true }),
  };
}

test('the package has what runs, and nothing of the tests', async (t) => {
  const listed = (await run('tar', ['-tzf', tarball])).stdout.trim().split('\n');
  const files = listed.map((path) => path.replace(/^package\//, ''));
  for (const file of [
    'package.json',
    'README.md',
    'LICENSE',
    'app/package.json',
    'app/package-lock.json',
    'app/GIT_VERSION',
    'app/config/Server.xml',
    'app/deploy/kiln',
    'app/deploy/setup',
    'app/deploy/start',
    'app/dist/main.js',
    'app/dist/sign.js',
    'app/dist/audit.js',
    'app/dist/bucket-thread.js',
    'app/dist/lua/claim.lua',
    'app/dist/pages/player.js',
  ])
    t.true(files.includes(file), file);
  t.deepEqual(
    files.filter((file) => /(?:^|\/)(?:test|src|docs|findings|node_modules)\/|\.ts$|api_data/.test(file)),
    [],
  );
});

for (const uid of users) {
  const who = uid === undefined ? 'the user of the tests' : 'a user without rights';
  test.serial(`kiln --demo sets itself up and plays, started by ${who}`, async (t) => {
    t.timeout(PATIENCE_MS);
    const { work, start } = fresh(t, uid);
    const [rtmp, http, api, ice, ice2] = freePorts(5) as [number, number, number, number, number];
    mkdirSync(join(work, 'config'));
    writeFileSync(
      join(work, 'config/Server.xml'),
      serverXml({ rtmp, http, api, ice: [ice, ice2] }, { storage: join(work, '../state') }),
    );
    const child = start('kiln', '--demo');
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk));
    const ended = new Promise((resolve) => child.once('close', resolve));
    t.teardown(async () => {
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
      await ended;
    });
    const page = await until(
      'the page to open is printed',
      () => {
        if (child.exitCode !== null) throw new Error(`it ended: ${output}`);
        return /Open +http:\/\/[^/]+(\S+)/.exec(output)?.[1];
      },
      PATIENCE_MS,
    );
    t.log(output.match(/^setup: .*$/gm)?.join('\n'));
    for (const step of ['packages', 'node', 'worker', 'ffmpeg']) t.regex(output, new RegExp(`^setup: ${step} `, 'm'));
    const get = (path: string) => fetch(`http://127.0.0.1:${http}${path}`);
    t.regex(await (await get(page)).text(), /^<!doctype html>/);
    const playlist = await until('there is a playlist', async () => {
      const answer = await get('/app/demo/llhls.m3u8');
      return answer.status === 200 && answer.text();
    });
    const media = playlist.split('\n').find((line) => line !== '' && !line.startsWith('#')) ?? '';
    t.regex(await (await get(`/app/demo/${media}`)).text(), /^#EXT-X-PART:/m);
  });
}

test.serial('without a configuration of its own a folder gets the sample; sign and audit need no set-up', async (t) => {
  t.timeout(PATIENCE_MS);
  const { home, ends } = fresh(t, undefined);
  const signed = await ends(
    'kiln-sign',
    '--url',
    'https://a.example:3334/app/s/llhls.m3u8',
    '--key',
    'k',
    '--expire',
    '1h',
  );
  t.regex(signed.stdout, /^https:.*&signature=[\w-]+\n$/);
  t.is(signed.stderr, '');
  const { code, stderr } = (await t.throwsAsync(ends('kiln-audit'))) as Error & { code: number; stderr: string };
  t.is(code, 2);
  t.regex(stderr, /^--key or KILN_AUDIT_KEY is needed\nkiln-audit --help lists the options\.\n/);
  const checked = await ends('kiln', '--check');
  t.regex(checked.stdout, new RegExp(`^${home}/cache/_npx/\\w+/node_modules/kiln/app/config/Server.xml is valid\n$`));
  t.regex((await ends('kiln', '--version')).stdout, /^Kiln \d+\.\d+\.\d+ \(v\d+\.\d+\.\d+-\d+-g[0-9a-f]{7,}\)\n$/);
});
