import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const PROGRAM = join(ROOT, 'node_modules/gitlab-ci-local/dist/index.js');

/** What GitLab's schema, which comes with gitlab-ci-local, says of a configuration; undefined: it is valid. */
async function fault(t: ExecutionContext, text: string): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-gitlab-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  cpSync(join(ROOT, 'package-lock.json'), join(folder, 'package-lock.json'));
  writeFileSync(join(folder, '.gitlab-ci.yml'), text);
  await run('git', ['init', '--quiet', folder]);
  return run(process.execPath, [PROGRAM, '--list'], { cwd: folder }).then(
    () => undefined,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
  );
}

test('.gitlab-ci.yml is valid by the schema of GitLab, and what is not valid is found', async (t) => {
  const text = readFileSync(join(ROOT, '.gitlab-ci.yml'), 'utf8');
  t.is(await fault(t, text), undefined);
  t.regex((await fault(t, text.replace('interruptible: true', 'uninterruptible: true'))) ?? '', /uninterruptible/);
});
