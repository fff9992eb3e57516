import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PATIENCE_MS } from '../time/until.ts';

export interface CallOptions {
  readonly host?: string;
  readonly streamId?: string;
  readonly passphrase?: string;
  readonly rendezvous?: boolean;
}

export interface Connect extends CallOptions {
  readonly do: 'connect';
  readonly call: number;
  readonly host: string;
  readonly port: number;
}

export type Ask =
  | Connect
  | { readonly do: 'send'; readonly call: number; readonly data: string }
  | { readonly do: 'receive' | 'longest' | 'unsent' | 'state' | 'close'; readonly call: number };

/** What is asked of the program that calls. */
export interface CallerRequest {
  readonly id: number;
  readonly ask: Ask;
}

export interface CallerResponse {
  readonly id: number;
  readonly result: number;
}

const PROGRAM = join(import.meta.dirname, 'caller-process.ts');

/** SRT callers by libsrt itself, in a process of their own. It is gone after the test. */
export class SrtCaller {
  readonly #child: ChildProcess = fork(PROGRAM, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  readonly #waiting = new Map<number, PromiseWithResolvers<number>>();
  #stderr = '';
  #ids = 0;
  #calls = 0;

  constructor(t: { teardown(action: () => Promise<unknown>): void }) {
    this.#child.on('message', ({ id, result }: CallerResponse) => {
      this.#waiting.get(id)?.resolve(result);
      this.#waiting.delete(id);
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString()));
    this.#child.on('exit', (code, signal) => {
      for (const { reject } of this.#waiting.values())
        reject(new Error(`the caller ended: ${code ?? signal} ${this.#stderr}`));
    });
    t.teardown(() => this.kill());
  }

  /** Connects. @returns what to send and to end it with, and 0 or why it was refused (codes of the SRT API) */
  async call(port: number, { host = '127.0.0.1', streamId = '', passphrase, rendezvous }: CallOptions = {}) {
    const call = this.#calls++;
    const refused = await this.#ask({ do: 'connect', call, host, port, streamId, passphrase, rendezvous });
    return {
      refused,
      send: (data: Buffer) => this.#ask({ do: 'send', call, data: data.toString('base64') }),
      /** Bytes that came since; -1 when the connection is gone. */
      receive: () => this.#ask({ do: 'receive', call }),
      /** Bytes of the longest message that came so far. */
      longest: () => this.#ask({ do: 'longest', call }),
      /** Messages that the other side does not have yet. */
      unsent: () => this.#ask({ do: 'unsent', call }),
      connected: async () => (await this.#ask({ do: 'state', call })) === 1,
      close: () => this.#ask({ do: 'close', call }),
    };
  }

  /** Vanishes, without a word to whoever is connected. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }

  #ask(ask: Ask): Promise<number> {
    const id = this.#ids++;
    const waiting = Promise.withResolvers<number>();
    this.#waiting.set(id, waiting);
    // what libsrt sends blocks until there is room for it
    const late = setTimeout(() => waiting.reject(new Error(`not in time: ${ask.do} of the caller`)), PATIENCE_MS);
    this.#child.send({ id, ask } satisfies CallerRequest, (error) => {
      if (error !== null) waiting.reject(error);
    });
    return waiting.promise.finally(() => clearTimeout(late));
  }
}
