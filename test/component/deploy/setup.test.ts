import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';

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

test('so is a library that Kiln can run without', async (t) => {
  t.is(
    await withoutRights(t, "get_library srt libsrt1.5-gnutls 'SRT is off'"),
    'setup: srt       libsrt1.5-gnutls is not installed, and installing packages needs root or sudo: Kiln runs without it, ' +
      'but SRT is off. As root: apt-get install --no-install-recommends libsrt1.5-gnutls\n',
  );
});
