import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';

const MAX_OUTPUT = 4 * 1024 * 1024;
const LAST_WORDS = 1000;

export interface RunOptions {
  readonly timeoutMs: number;
  /** Code with which it ends well; 0 if absent. */
  readonly exitCode?: number;
  readonly env?: NodeJS.ProcessEnv;
  /** File descriptor for its standard input; absent: none. */
  readonly input?: number;
  /** Whether the result is on standard error. */
  readonly answersOnStderr?: boolean;
}

/** Signals of terminals and service managers to a whole process group. */
const GROUP_SIGNALS: ReadonlySet<NodeJS.Signals | null> = new Set<NodeJS.Signals>(['SIGINT', 'SIGTERM', 'SIGHUP']);

/**
 * Runs a program, out of reach of the terminal's Ctrl-C.
 * @returns its standard output, or standard error
 * @throws Error with its last output when it cannot be started, does not end well or takes too long
 */
export function runProgram(path: string, args: readonly string[], options: RunOptions): Promise<string> {
  return run(path, args, options, true);
}

function run(path: string, args: readonly string[], options: RunOptions, mayRepeat: boolean): Promise<string> {
  const { timeoutMs, exitCode = 0, env, input, answersOnStderr = false } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, {
      stdio: [input ?? 'ignore', 'pipe', 'pipe'],
      detached: true,
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      ...(env && { env }),
    }) as ChildProcessByStdio<null, Readable, Readable>;
    const chunks: Buffer[] = [];
    let size = 0;
    let words = '';
    const answers = answersOnStderr ? child.stderr : child.stdout;
    child.stdout.resume();
    answers.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_OUTPUT) chunks.push(chunk);
      else child.kill('SIGKILL');
    });
    child.stderr.on('data', (chunk: Buffer) => (words = (words + chunk.toString()).slice(-LAST_WORDS)));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === exitCode) resolve(Buffer.concat(chunks).toString());
      // one that was sent while this child was being made, and was in the group of this process yet
      else if (mayRepeat && GROUP_SIGNALS.has(signal)) resolve(run(path, args, options, false));
      else reject(new Error(`${path} has ended with ${signal ?? `code ${code}`}: ${words.trim()}`));
    });
  });
}
