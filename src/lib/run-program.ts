import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';

const MAX_OUTPUT = 4 * 1024 * 1024;
const LAST_WORDS = 1000;

export interface RunOptions {
  readonly timeoutMs: number;
  readonly env?: NodeJS.ProcessEnv;
  /** Descriptor of a file that is its standard input; absent: none. */
  readonly input?: number;
  /** What it says on standard error is the answer. */
  readonly answersOnStderr?: boolean;
}

/**
 * Runs a program that answers on its standard output, or on standard error, apart from the terminal's Ctrl-C.
 * @returns what it put out
 * @throws Error when it cannot be started, does not end with 0 or not in time, with its last words
 */
export function runProgram(path: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { timeoutMs, env, input, answersOnStderr = false } = options;
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
      if (code === 0) resolve(Buffer.concat(chunks).toString());
      else reject(new Error(`${path} has ended with ${signal ?? `code ${code}`}: ${words.trim()}`));
    });
  });
}
