import { spawn } from 'node:child_process';

const MAX_OUTPUT = 4 * 1024 * 1024;
const LAST_WORDS = 1000;

export interface RunOptions {
  readonly timeoutMs: number;
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Runs a program that answers on its standard output, apart from the terminal's Ctrl-C.
 * @returns what it put out
 * @throws Error when it cannot be started, does not end with 0 or not in time, with its last words
 */
export function runProgram(path: string, args: readonly string[], { timeoutMs, env }: RunOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      ...(env && { env }),
    });
    const chunks: Buffer[] = [];
    let size = 0;
    let words = '';
    child.stdout.on('data', (chunk: Buffer) => {
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
