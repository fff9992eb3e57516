import { execFileSync, spawn } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import test, { type ExecutionContext } from 'ava';
import { until } from '../../support/time/until.ts';

const CHILD = join(import.meta.dirname, '../../support/server/log-child.ts');
const MEGABYTE = 1024 * 1024;
const DROPPED = /(\d+) lines of the log were dropped/;

/** A process whose log goes into a pipe that is read on request only. */
function start(t: ExecutionContext, format: 'text' | 'json') {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-log-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  // a process that opens the pipe at once and reads when it gets a line: the thread of a test closes what it has opened
  // itself when it ends, so a descriptor must not be given to a socket, which has closed it by then
  const reader = spawn('sh', ['-c', 'exec 3<"$0"; read -r _; exec cat <&3', path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(() => reader.kill('SIGKILL'));
  const writing = openSync(path, constants.O_WRONLY);
  const child = spawn(process.execPath, [CHILD, format], { stdio: ['pipe', 'pipe', writing] });
  closeSync(writing);
  t.teardown(() => child.kill('SIGKILL'));
  const answers: number[] = [];
  createInterface({ input: child.stdout as Readable }).on('line', (line) => answers.push(Number(line)));
  const lines: string[] = [];
  return {
    lines,
    exited: () => until('it has ended', () => child.exitCode !== null).then(() => child.exitCode),
    signal: (name: NodeJS.Signals) => child.kill(name),
    command: (line: string) => child.stdin?.write(`${line}\n`),
    /** @returns the memory that the process has then, in bytes */
    log: async (level: 'info' | 'warn', count: number): Promise<number> => {
      const before = answers.length;
      child.stdin?.write(`${level} ${count}\n`);
      return await until('it answers', () => answers[before]);
    },
    read: () => {
      reader.stdin.end('read\n');
      createInterface({ input: reader.stdout }).on('line', (line) => lines.push(line));
    },
  };
}

for (const format of ['text', 'json'] as const) {
  test(`a log in ${format} whose reader stops reading blocks nothing and stays small; the reader learns what it missed`, async (t) => {
    const child = start(t, format);
    const before = await child.log('info', 1);
    // a hundred megabytes
    for (let n = 0; n < 50; n++) await child.log('info', 2000);
    await child.log('warn', 1);
    const after = await child.log('info', 1);
    t.true(after - before < 60 * MEGABYTE, `${after - before} bytes more`);
    child.read();
    await until('it says what was dropped', () => child.lines.some((line) => DROPPED.test(line)));
    const dropped = child.lines.map((line) => Number(DROPPED.exec(line)?.[1] ?? 0)).reduce((sum, count) => sum + count);
    const kept = child.lines.filter((line) => line.includes('xxx'));
    t.is(kept.length + dropped, 100_003);
    t.true(
      kept.some((line) => /WRN|"warn"/.test(line)),
      'a warning is not dropped for lines below it',
    );
    await child.log('info', 10);
    await until(
      'it logs as before',
      () => child.lines.filter((line) => line.includes('xxx')).length === kept.length + 10,
    );
  });

  test(`a process whose log in ${format} is read late does not end before`, async (t) => {
    const child = start(t, format);
    await child.log('info', 3000);
    await child.log('warn', 1);
    // its end waits for a second, which a busy machine may take to start the reader
    child.signal('SIGSTOP');
    child.command('exit');
    child.read();
    await until('it is read', () => child.lines.length > 0);
    child.signal('SIGCONT');
    t.is(await child.exited(), 0);
    await until('it has said what was dropped', () => child.lines.some((line) => DROPPED.test(line)));
    const dropped = child.lines.map((line) => Number(DROPPED.exec(line)?.[1] ?? 0)).reduce((sum, count) => sum + count);
    t.is(child.lines.filter((line) => line.includes('xxx')).length + dropped, 3001);
  });

  test(`a process whose log in ${format} has no reader can end`, async (t) => {
    const child = start(t, format);
    await child.log('info', 2000);
    child.command('exit');
    t.is(await child.exited(), 0);
  });
}
