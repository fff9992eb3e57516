import { execFile, spawnSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { checkSignature } from '../../../src/access/policy/check.ts';
import { signUrl } from '../../../src/access/policy/sign.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const URL = 'https://live.example.com:3334/app/stream/llhls.m3u8';
const EXPIRE = 4_102_444_800_000;
const KEY = '1kU^b6';
const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: KEY,
  algorithm: 'sha1',
} as const;
const SIGNED = `${URL}?policy=eyJ1cmxfZXhwaXJlIjo0MTAyNDQ0ODAwMDAwfQ&signature=`;

/** By the example: the program that runs it. */
const RUNNERS: Readonly<Record<string, string>> = {
  'sign.sh': 'bash',
  'sign.mjs': process.execPath,
  'sign.py': 'python3',
  'sign.php': 'php',
};

test('a URL that the examples sign is accepted by the server', (t) => {
  const url = signUrl(URL, { url_expire: EXPIRE }, SIGNING);
  t.true(url.startsWith(SIGNED));
  t.is(checkSignature(url, SIGNING).urlExpire, EXPIRE);
});

for (const [file, program] of Object.entries(RUNNERS)) {
  // of the four languages, only PHP need not be installed
  const isRun = program !== 'php' || spawnSync(program, ['--version']).error === undefined;
  (isRun ? test : test.skip)(`examples/sign/${file} prints a URL that the server takes`, async (t) => {
    const { stdout } = await run(program, [join(ROOT, 'examples/sign', file), URL, KEY, String(EXPIRE)]);
    t.is(stdout, `${signUrl(URL, { url_expire: EXPIRE }, SIGNING)}\n`);
  });
}

test('every example of signing is run', async (t) => {
  t.deepEqual((await readdir(join(ROOT, 'examples/sign'))).toSorted(), Object.keys(RUNNERS).toSorted());
});

test('npm run sign: what it prints is accepted, and each kind of end has its exit code', async (t) => {
  const sign = (...args: string[]) =>
    run(process.execPath, [join(ROOT, 'src/cli/sign.ts'), ...args]).then(
      ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    );
  const { stdout } = await sign('--url', URL, '--key', KEY, '--expire', '1h');
  const url = stdout.trim();
  t.notThrows(() => checkSignature(url, SIGNING));
  t.like(await sign('--check', url, '--key', KEY), { code: 0, stderr: '' });
  const refused = await sign('--check', url, '--key', 'other');
  t.is(refused.code, 1);
  t.regex(refused.stdout, /^refused: the signature/);
  const wrong = await sign('--url', URL);
  t.is(wrong.code, 2);
  t.is(wrong.stderr, '--key is needed\nnpm run sign -- --help lists the options.\n');
  const help = await sign('--help');
  t.is(help.code, 0);
  t.regex(help.stdout, /npm run sign -- --check URL/);
});
