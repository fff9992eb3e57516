import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
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
