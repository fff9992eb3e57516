import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { runProgram } from '../../../src/lib/run-program.ts';
import { writeScript } from '../../support/programs/script.ts';

const LIMITS = { timeoutMs: 60_000 };

/** A program that counts its runs in a file. @param text gets that file */
function program(t: ExecutionContext, text: (runs: string) => string) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-run-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const runs = join(folder, 'runs');
  const path = writeScript(join(folder, 'program'), `echo >>${runs}\n${text(runs)}`);
  return { path, runs: () => (existsSync(runs) ? readFileSync(runs).length : 0) };
}

test('a program that a signal to the group of the server ended is run once more', async (t) => {
  for (const signal of ['INT', 'TERM', 'HUP']) {
    const first = program(t, (runs) => `[ $(wc -l <${runs}) != 1 ] || kill -${signal} $$\necho done`);
    t.is(await runProgram(first.path, [], LIMITS), 'done\n');
    t.is(first.runs(), 2);
    const always = program(t, () => `kill -${signal} $$`);
    await t.throwsAsync(runProgram(always.path, [], LIMITS), { message: new RegExp(`has ended with SIG${signal}`) });
    t.is(always.runs(), 2);
  }
});

test('a program that crashes, fails or takes too long is not run again', async (t) => {
  for (const [text, ended] of [
    ['kill -SEGV $$', /has ended with SIGSEGV/],
    ['echo no such thing >&2; exit 3', /has ended with code 3: no such thing/],
    ['exec sleep 60', /has ended with SIGKILL/],
  ] as const) {
    const { path, runs } = program(t, () => text);
    await t.throwsAsync(runProgram(path, [], { timeoutMs: text.includes('sleep') ? 1000 : 60_000 }), {
      message: ended,
    });
    t.true(runs() <= 1);
  }
});
