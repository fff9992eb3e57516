import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, closeSync, constants, openSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Debian installs servers in folders that the PATH of a plain user lacks. */
const SEARCH = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
const LOOK_EVERY_MS = 100;
const READY_WITHIN_MS = 60_000;
const KILL_AFTER_MS = 12_000;
const LAST_LINES = 10;

export interface ProgramOptions {
  readonly name: string;
  readonly path: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Path of the file for its output. */
  readonly log: string;
  /** Signal for an orderly end. */
  readonly ending: NodeJS.Signals;
  /** Called when it ends unexpectedly. */
  readonly onEnd: (how: string) => void;
}

/** @throws Error when no such program is installed */
export function findProgram(name: string): string {
  for (const folder of SEARCH) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not in this one
    }
  }
  throw new Error(`${name} is not installed (Debian: apt-get install ${name})`);
}

/** A program beside this one, out of reach of the terminal's Ctrl-C: this process ends it. */
export class Program {
  readonly #options: ProgramOptions;
  #child: ChildProcess;
  #ending: Promise<void> | undefined;

  constructor(options: ProgramOptions) {
    this.#options = options;
    this.#child = this.#spawn();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get #runs(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** @throws Error with its last output when it ends before `probe` returns true, or that takes too long */
  async ready(probe: () => Promise<boolean>): Promise<void> {
    const { name } = this.#options;
    const end = performance.now() + READY_WITHIN_MS;
    while (!(await probe())) {
      if (!this.#runs) throw new Error(`${name} did not start:\n${this.#lastWords()}`);
      if (performance.now() > end)
        throw new Error(`${name} is not ready after ${READY_WITHIN_MS / 1000} s:\n${this.#lastWords()}`);
      await delay(LOOK_EVERY_MS);
    }
  }

  /** Starts the program again after it has ended. */
  restart(): void {
    if (!this.#runs && this.#ending === undefined) this.#child = this.#spawn();
  }

  /** Ends the program by its signal, or by force when that takes too long. Idempotent. */
  close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** Ends the program, and its children, at once. */
  kill(): void {
    if (this.#runs) process.kill(-(this.pid as number), 'SIGKILL');
  }

  async #end(): Promise<void> {
    if (!this.#runs) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill(this.#options.ending);
    const late = setTimeout(() => this.kill(), KILL_AFTER_MS);
    await gone;
    clearTimeout(late);
  }

  #spawn(): ChildProcess {
    const { path, args, env, log, onEnd } = this.#options;
    const output = openSync(log, 'a');
    const child = spawn(path, args, {
      stdio: ['ignore', output, output],
      env: { ...process.env, ...env },
      detached: true,
    });
    closeSync(output);
    child.once('error', (error) => onEnd(error.message));
    child.once('exit', (code, signal) => {
      if (this.#ending === undefined) onEnd(signal === null ? `code ${code}` : signal);
    });
    return child;
  }

  #lastWords(): string {
    return readFileSync(this.#options.log, 'utf8').trimEnd().split('\n').slice(-LAST_LINES).join('\n');
  }
}
