import { BackOff } from '../../lib/back-off.ts';

export interface LaneOptions {
  /** How many at once. */
  readonly most: number;
  /** @throws Error for one that has to be tried again */
  readonly run: (name: string) => Promise<void>;
  /** One has failed: it is tried again after all others, so many with it. */
  readonly onFailure: (error: Error, waiting: number) => void;
  /** The first success after failures. */
  readonly onRecovery: (failures: number) => void;
  readonly onEmpty: () => void;
}

/** Also for a destination that was away for days. */
const LONGEST_PAUSE_MS = 5 * 60_000;

/**
 * What waits for one destination. A failure pauses all of it, since most have their cause there, longer and longer; then
 * one at a time finds out whether it is back. It keeps names only: there may be many.
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

  /** How many wait or run. */
  get size(): number {
    return this.#waiting.length + this.#running.size;
  }

  /** The last one has failed. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  add(name: string): void {
    this.#waiting.push(name);
    this.#next();
  }

  /** Starts nothing more, and waits for what runs. Idempotent. */
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
    // without itself, which is in both
    this.#options.onFailure(error, this.size - 1);
    // of several that ran, one counts
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#next();
    }, this.#pauses.next()).unref();
  }
}
