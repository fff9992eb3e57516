import Redlock, { ExecutionError, ResourceLockedError } from 'redlock';
import { ConflictError, UnavailableError } from '../errors.ts';
import type { Client } from './connection.ts';

const HELD_MS = 5000;
const ASK_AGAIN_MS = 100;

/**
 * Locks for short steps, one node at a time. A step that is stopped for longer than the lock lasts is not alone any more
 * when it goes on: what it writes has to be compared with what it has seen, too.
 */
export class RedisLocks {
  readonly #redlock: Redlock;
  readonly #prefix: string;

  constructor(client: Client, prefix: string) {
    this.#prefix = prefix;
    this.#redlock = new Redlock([client], { retryCount: 2 * HELD_MS / ASK_AGAIN_MS, retryDelay: ASK_AGAIN_MS, retryJitter: 50 });
  }

  /** @throws UnavailableError, ConflictError; and what `fn` throws */
  async run<T>(key: string, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    let result: Promise<T> | undefined;
    try {
      return await this.#redlock.using([`${this.#prefix}lock:${key}`], HELD_MS, (signal) => (result = fn(signal)));
    } catch (error) {
      // the step is what counts: a lock that cannot be given back runs out
      if (result !== undefined) return result;
      throw await reason(key, error);
    }
  }
}

async function reason(key: string, error: unknown): Promise<unknown> {
  if (!(error instanceof ExecutionError)) return error;
  const [cause] = [...((await error.attempts.at(-1))?.votesAgainst.values() ?? [])];
  if (cause instanceof ResourceLockedError) return new ConflictError(`${key} is locked by others`, { cause: error });
  return new UnavailableError(`Redis: ${cause?.message ?? error.message}`, { cause: error });
}
