import { setTimeout as delay } from 'node:timers/promises';
import Redlock, { ExecutionError, ResourceLockedError } from 'redlock';
import { ConflictError, UnavailableError } from '../errors.ts';
import type { Client } from './connection.ts';

const HELD_MS = 5000;
const ASK_AGAIN_MS = 50;

/**
 * Locks for short steps, one node at a time. A process that was suspended for longer than its lock lasts is no
 * longer alone when it continues, so the writes of a step must be conditional, too.
 */
export class RedisLocks {
  readonly #redlock: Redlock;
  readonly #prefix: string;

  constructor(client: Client, prefix: string) {
    this.#prefix = prefix;
    // for the renewal of a lock that is held
    this.#redlock = new Redlock([client], { retryCount: 5, retryDelay: 100 });
  }

  /** @throws UnavailableError, ConflictError; and what `fn` throws */
  async run<T>(key: string, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const end = performance.now() + 2 * HELD_MS;
    for (;;) {
      let result: Promise<T> | undefined;
      try {
        const step = (held: AbortSignal): Promise<T> => (result = fn(lossOf(key, held)));
        return await this.#redlock.using([`${this.#prefix}lock:${key}`], HELD_MS, { retryCount: 0 }, step);
      } catch (error) {
        // the step is what counts: a lock that cannot be released expires
        if (result !== undefined) return await result;
        const reason = await reasonOf(key, error);
        if (!(reason instanceof ConflictError) || performance.now() > end) throw reason;
      }
      await delay(ASK_AGAIN_MS * (0.5 + Math.random()));
    }
  }
}

/** Aborts when a lock was lost. */
function lossOf(key: string, held: AbortSignal): AbortSignal {
  const loss = new AbortController();
  const lose = (): void => loss.abort(new ConflictError(`the lock of ${key} was lost`));
  if (held.aborted) lose();
  else held.addEventListener('abort', lose, { once: true });
  return loss.signal;
}

async function reasonOf(key: string, error: unknown): Promise<unknown> {
  if (!(error instanceof ExecutionError)) return error;
  const [cause] = [...((await error.attempts.at(-1))?.votesAgainst.values() ?? [])];
  if (cause instanceof ResourceLockedError) return new ConflictError(`${key} is locked by others`, { cause: error });
  return new UnavailableError(`Redis: ${cause?.message ?? error.message}`, { cause: error });
}
