import { BackOff } from '../../lib/back-off.ts';

export interface LaneOptions {
  /** Limit of concurrent jobs. */
  readonly most: number;
  /** @throws Error for a job that has to be tried again */
  readonly run: (name: string) => Promise<void>;
  /** Called when a job failed: it is tried again after all others. `waiting` includes it. */
  readonly onFailure: (error: Error, waiting: number) => void;
  /** Called at the first success after failures. */
  readonly onRecovery: (failures: number) => void;
  readonly onEmpty: () => void;
}

/** Applies even to a destination that was unreachable for days. */
const LONGEST_PAUSE_MS = 5 * 60_000;

/**
 * Queue of one destination. A failure pauses all of it with growing pauses, since the cause is mostly the
 * destination; then single jobs probe it. It keeps names only, as there may be many.
 */
export class Lane {
  readonly #options: LaneOptions;
  readonly #pauses = new BackOff(LONGEST_PAUSE_MS);
  readonly #waiting: string[] = [];
  readonly #running = new Set<Promise<void>>();
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Number of waiting and running jobs. */
  get size(): number {
    return this.#waiting.length + this.#running.size;
  }

  /** Whether the last job failed. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  add(name: string): void {
    this.#waiting.push(name);
    this.#next();
  }

  /** Starts no more jobs, and waits for running ones. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await Promise.all(this.#running);
  }

  #next(): void {
    while (
      !this.#closed &&
      this.#timer === undefined &&
      this.#running.size < (this.isFailing ? 1 : this.#options.most)
    ) {
      const name = this.#waiting.shift();
      if (name === undefined) break;
      const running = this.#run(name).finally(() => {
        this.#running.delete(running);
        this.#next();
        if (this.size === 0) this.#options.onEmpty();
      });
      this.#running.add(running);
    }
  }

  async #run(name: string): Promise<void> {
    try {
      await this.#options.run(name);
    } catch (error) {
      this.#waiting.push(name);
      if (!this.#closed) this.#fail(error as Error);
      return;
    }
    if (this.#failures > 0) this.#options.onRecovery(this.#failures);
    this.#failures = 0;
    this.#pauses.reset();
  }

  #fail(error: Error): void {
    this.#failures++;
    // without the job itself, which counts twice
    this.#options.onFailure(error, this.size - 1);
    // of several concurrent failures, one counts
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#next();
    }, this.#pauses.next()).unref();
  }
}
