import { Limiter } from '../limiter.ts';

/** Runs tasks with the same key one after the other; those with different keys run at the same time. */
export class KeyedMutex {
  readonly #limiters = new Map<string, Limiter>();

  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const limiter = this.#limiters.get(key) ?? new Limiter(1);
    this.#limiters.set(key, limiter);
    try {
      return await limiter.run(task);
    } finally {
      if (limiter.size === 0 && this.#limiters.get(key) === limiter) this.#limiters.delete(key);
    }
  }
}
