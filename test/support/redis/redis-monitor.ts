import type { ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { SCRIPTS } from '../../../cluster/redis/scripts.ts';
import type { RedisServer } from './redis.ts';

/** How often each command was sent. */
export type Counts = ReadonlyMap<string, number>;

const NAMES = new Map(Object.entries(SCRIPTS).map(([name, { hash }]) => [hash, name]));

/** What clients send to a Redis, each command by its name, a script of the cluster's by the name of the script. */
export class RedisMonitor {
  readonly #raw: Redis;
  readonly #monitor: Redis;
  #counts = new Map<string, number>();

  private constructor(raw: Redis, monitor: Redis) {
    this.#raw = raw;
    this.#monitor = monitor;
    monitor.on('monitor', (_time: string, args: string[], source: string) => {
      // what a script does is part of it
      if (source === 'lua') return;
      const [command = '', hash = ''] = args;
      const name = NAMES.get(hash) ?? command.toLowerCase();
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    });
  }

  static async open(t: Pick<ExecutionContext, 'teardown'>, { url }: RedisServer): Promise<RedisMonitor> {
    const raw = new Redis(url);
    const monitor = await raw.monitor();
    t.teardown(() => {
      raw.disconnect();
      monitor.disconnect();
    });
    return new RedisMonitor(raw, monitor);
  }

  /** What is sent while `step` runs, which gets the counts as they grow. */
  async during(step: (counts: Counts) => Promise<unknown>): Promise<Counts> {
    await this.#flush('begin');
    const counts = (this.#counts = new Map<string, number>());
    await step(counts);
    await this.#flush('end');
    counts.delete('echo');
    return counts;
  }

  /** Resolves when everything was heard that was sent before. */
  async #flush(mark: string): Promise<void> {
    const heard = new Promise<void>((resolve) => {
      const listener = (_time: string, [command, text]: string[]): void => {
        if (command?.toLowerCase() !== 'echo' || text !== mark) return;
        this.#monitor.off('monitor', listener);
        resolve();
      };
      this.#monitor.on('monitor', listener);
    });
    await this.#raw.echo(mark);
    await heard;
  }
}
