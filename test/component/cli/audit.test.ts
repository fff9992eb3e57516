import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { pino } from 'pino';
import { AuditLog } from '../../../src/management/audit/log.ts';

const COMMAND = join(import.meta.dirname, '../../../src/cli/audit.ts');

/** What `npm run audit` says, and its exit code. */
function audit(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<{ code: unknown; text: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [COMMAND, ...args], { env: { ...process.env, ...env } }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, text: stdout + stderr }),
    );
  });
}

test('the command says whether a file is whole, and where it is not', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-audit-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'audit.log');
  const log = new AuditLog({ path, key: 'k', node: 'a', log: pino({ level: 'silent' }) });
  log.add({ user: 'u', remote: '::1', method: 'POST', path: '/', status: 200, requestId: 'r' });
  await log.close();
  t.deepEqual(await audit(['--key', 'k', path]), { code: 0, text: 'whole: 3 lines are as they were written\n' });
  t.is((await audit([path], { KILN_AUDIT_KEY: 'k' })).code, 0);
  writeFileSync(path, readFileSync(path, 'utf8').replace('::1', '::2'));
  const broken = await audit(['--key', 'k', path]);
  t.is(broken.code, 1);
  t.true(broken.text.startsWith(`BROKEN at ${path}:2: it was altered`), broken.text);
  for (const args of [[path], ['--key', 'k'], ['--key', 'k', join(folder, 'none')], ['--what']]) {
    const wrong = await audit(args, { KILN_AUDIT_KEY: '' });
    t.is(wrong.code, 2, wrong.text);
    t.is(wrong.text.split('\n').length, 3, wrong.text);
  }
  t.regex((await audit(['--help'])).text, /^Checks that no line/);
});
