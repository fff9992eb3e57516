import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

type Commands = Readonly<Record<string, (argument: never) => unknown>>;

interface Request {
  readonly id: number;
  readonly command: string;
  readonly argument: unknown;
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/**
 * Part of a load that runs in a process of its own, so that neither its CPU time nor its garbage collection
 * is in the way of who measures. `C` are the commands it serves.
 */
export class Program<C extends Commands> {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #id = 0;

  /** @param name file in programs/ */
  constructor(name: string) {
    this.#child = fork(join(import.meta.dirname, 'programs', name), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#child.on('message', (answer: Answer) => this.#settle(answer));
    this.#child.once('exit', (code) => {
      for (const id of [...this.#waiting.keys()]) this.#settle({ id, error: `${name} ended with ${code}` });
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Runs a command there. @throws Error with what it threw there */
  ask<K extends keyof C & string>(command: K, argument: Parameters<C[K]>[0]): Promise<Awaited<ReturnType<C[K]>>> {
    const id = ++this.#id;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ value, error }) => {
        if (error === undefined) resolve(value as Awaited<ReturnType<C[K]>>);
        else reject(new Error(error));
      });
      this.#child.send({ id, command, argument } satisfies Request);
    });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }

  #settle(answer: Answer): void {
    const settle = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    settle?.(answer);
  }
}

/** The other end: serves commands to the process that started this one, and ends with it. */
export function serve(commands: Commands): void {
  process.on('message', (request: Request) => void answer(commands, request));
  process.once('disconnect', () => process.exit(0));
}

async function answer(commands: Commands, { id, command, argument }: Request): Promise<void> {
  try {
    const value = await commands[command]?.(argument as never);
    process.send?.({ id, value } satisfies Answer);
  } catch (error) {
    process.send?.({ id, error: (error as Error).message } satisfies Answer);
  }
}
