interface Waiting {
  readonly start: () => void;
  readonly reject: (error: Error) => void;
}

/** Limits how many tasks run at a time. Others wait, first come, first served; their number can be limited, too. */
export class Limiter {
  readonly #concurrency: number;
  readonly #maxWaiting: number;
  readonly #waiting: Waiting[] = [];
  #running = 0;

  constructor(concurrency: number, maxWaiting = Infinity) {
    this.#concurrency = concurrency;
    this.#maxWaiting = maxWaiting;
  }

  /** Number of running and waiting tasks. */
  get size(): number {
    return this.#running + this.#waiting.length;
  }

  /**
   * Starts the task synchronously if fewer than the limit run, otherwise when its turn comes.
   * @param onFull makes the error for a task that may not even wait
   * @throws what the task throws; the errors of `onFull` and `rejectWaiting`
   */
  async run<T>(task: () => Promise<T>, onFull = (): Error => new Error('too many wait')): Promise<T> {
    if (this.#running < this.#concurrency) this.#running++;
    else {
      if (this.#waiting.length >= this.#maxWaiting) throw onFull();
      await new Promise<void>((start, reject) => this.#waiting.push({ start, reject }));
    }
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next.start();
    }
  }

  /** Fails all tasks that wait; those that run go on. */
  rejectWaiting(reason: () => Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(reason());
  }
}
