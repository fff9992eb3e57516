import { LostError, UnavailableError, type Json, type Lease } from '#cluster';
import type { Logger } from '../log.ts';

/** What a lease follows; asked when it is told. */
export interface ToldFacts {
  /** What others are to know now. */
  readonly meta?: () => Json;
  /** What the next holder is to inherit. */
  readonly kept?: () => Json;
}

/** A lease whose meta, and what it keeps, follow what they are made of. */
export class ToldLease {
  readonly #lease: Lease;
  readonly #log: Logger;
  readonly #meta: Follower;
  readonly #kept: Follower;
  #released = false;

  constructor(lease: Lease, { meta, kept }: ToldFacts, log: Logger) {
    this.#lease = lease;
    this.#log = log;
    this.#meta = new Follower(() => this.#bring(async () => meta && lease.update(meta())));
    this.#kept = new Follower(() => this.#bring(async () => kept && lease.keep(kept())));
  }

  get valid(): boolean {
    return this.#lease.valid;
  }

  /** Tells the cluster how it is now; of several changes at once the last counts. */
  tell(): void {
    this.#meta.follow();
  }

  /** Keeps for the next holder what is to be kept now; of several changes at once the last counts. */
  keep(): void {
    this.#kept.follow();
  }

  /** Neither waits for the other: who claims the key next finds it free, and what was kept last. Idempotent. */
  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    for (const follower of [this.#meta, this.#kept]) follower.close();
    await this.#lease.release();
  }

  async #bring(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      // it is told with the next renewal; and who has the lease hears of a loss
      const isExpected = error instanceof UnavailableError || error instanceof LostError;
      this.#log[isExpected ? 'debug' : 'error'](
        { key: this.#lease.key, err: error },
        'a claim in the store of the cluster could not be updated',
      );
    }
  }
}

/** Repeats a step after every change, one at a time. */
class Follower {
  readonly #step: () => Promise<void>;
  /** Something changed since the last step began. */
  #changed = false;
  #isRunning = false;
  #closed = false;

  constructor(step: () => Promise<void>) {
    this.#step = step;
  }

  follow(): void {
    this.#changed = true;
    if (!this.#isRunning) void this.#run();
  }

  /** Begins the last step at once, whether or not one is under way. */
  close(): void {
    this.#closed = true;
    if (this.#changed) void this.#step();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#changed && !this.#closed) {
      this.#changed = false;
      await this.#step();
    }
    this.#isRunning = false;
  }
}
