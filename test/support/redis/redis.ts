import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { freePorts } from '../network/ports.ts';
import { Limiter } from '../../../src/lib/limiter.ts';
import { until } from '../time/until.ts';

export interface RedisServerOptions {
  readonly program?: 'redis-server' | 'redis-sentinel';
  /** Writes the configuration file, when there has to be one. */
  readonly configure?: (folder: string) => string;
  readonly args?: readonly string[];
  /** Keep what it has across restart(). */
  readonly durable?: boolean;
  /** What answers on the port needs no TLS and no password to say that it is there. */
  readonly port?: number;
  /** Where it is; nothing but tests reaches that. Loopback unless given. */
  readonly address?: string;
}

/** Tests of a file that have servers at the same time: more, each with its nodes, are late for their own leases. */
const atOnce = new Limiter(5);
const theirTurn = new WeakSet<object>();

/** Waits for the turn of a test, which ends with the test. */
async function turnOf(t: Pick<ExecutionContext, 'teardown'>): Promise<void> {
  if (theirTurn.has(t)) return;
  theirTurn.add(t);
  await new Promise<void>((begins) => {
    void atOnce.run(
      () =>
        new Promise<void>((ends) => {
          t.teardown(ends);
          begins();
        }),
    );
  });
}

/** None outlives its tests, also when they are given up. */
const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** A Redis of a test's own: loopback, a free port, a folder that is gone afterwards. */
export class RedisServer {
  readonly port: number;
  readonly folder = mkdtempSync(join(tmpdir(), 'kiln-redis-'));
  readonly #options: RedisServerOptions;
  #child: ChildProcess | undefined;

  private constructor(port: number, options: RedisServerOptions) {
    this.port = port;
    this.#options = options;
  }

  static async start(t: Pick<ExecutionContext, 'teardown'>, options: RedisServerOptions = {}): Promise<RedisServer> {
    await turnOf(t);
    const port = options.port ?? (freePorts(1)[0] as number);
    const server = new RedisServer(port, options);
    t.teardown(async () => {
      await server.kill();
      rmSync(server.folder, { recursive: true, force: true });
    });
    await server.run();
    return server;
  }

  get url(): string {
    return `redis://${this.#options.address ?? '127.0.0.1'}:${this.port}`;
  }

  /** Starts it, again after kill(). */
  async run(): Promise<void> {
    const { program = 'redis-server', args = [], configure, durable = false, address } = this.#options;
    const file = configure === undefined ? [] : [configure(this.folder)];
    const saved = durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
    const own = program === 'redis-sentinel' ? [] : ['--save', '', ...saved];
    const port = args.includes('--tls-port') ? ['--port', '0'] : ['--port', String(this.port)];
    const child = spawn(
      program,
      [
        ...file,
        ...port,
        '--bind',
        '127.0.0.1',
        ...(address === undefined ? [] : [address, '--protected-mode', 'no']),
        '--dir',
        this.folder,
        '--logfile',
        'log',
        ...own,
        ...args,
      ],
      {
        stdio: 'ignore',
        cwd: this.folder,
      },
    );
    this.#child = child;
    running.add(child);
    child.once('exit', () => running.delete(child));
    await until(`${program} on port ${this.port}`, async () => {
      if (child.exitCode !== null) throw new Error(readFileSync(join(this.folder, 'log'), 'utf8'));
      return await accepts(this.port);
    });
  }

  /** Whatever it has kept is gone; to be called when it does not run. */
  forget(): void {
    rmSync(join(this.folder, 'appendonlydir'), { recursive: true, force: true });
  }

  /** Keeps a copy of what it has now, for recall(). */
  remember(): void {
    rmSync(join(this.folder, 'old'), { recursive: true, force: true });
    cpSync(join(this.folder, 'appendonlydir'), join(this.folder, 'old'), { recursive: true });
  }

  /** Puts the copy back; to be called when it does not run. */
  recall(): void {
    this.forget();
    cpSync(join(this.folder, 'old'), join(this.folder, 'appendonlydir'), { recursive: true });
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (result: boolean) => () => {
      socket.destroy();
      resolve(result);
    };
    socket.once('connect', end(true)).once('error', end(false));
  });
}
