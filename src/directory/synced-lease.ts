import { setTimeout as delay } from 'node:timers/promises';
import { LostError, UnavailableError, type Json, type Lease } from '#cluster';
import type { Logger } from '../log/log.ts';

/** Content of a lease, read whenever it is written to the store. */
export interface LeaseContent {
  /** Value that other nodes see. */
  readonly meta?: () => Json;
  /** Value that the next holder inherits. */
  readonly kept?: () => Json;
  /** Milliseconds between two writes of `kept`; 0, the default: as fast as the store answers. */
  readonly keepEveryMs?: number;
}

/** A lease whose meta and kept value are written to the store after each change. */
export class SyncedLease {
  readonly #lease: Lease;
  readonly #log: Logger;
  readonly #meta: Follower;
  readonly #kept: Follower;
  #released = false;

  constructor(lease: Lease, { meta, kept, keepEveryMs = 0 }: LeaseContent, log: Logger) {
    this.#lease = lease;
    this.#log = log;
    this.#meta = new Follower(() => this.#attempt(async () => meta && lease.update(meta())), 0);
    this.#kept = new Follower(() => this.#attempt(async () => kept && lease.keep(kept())), keepEveryMs);
  }

  get valid(): boolean {
    return this.#lease.valid;
  }

  /** Writes the present meta. Several changes in a row may become one write. */
  update(): void {
    this.#meta.follow();
  }

  /** Writes the present kept value. Several changes in a row may become one write. */
  keep(): void {
    this.#kept.follow();
  }

  /** Writes the kept value once more and releases the lease, without a pause between. Idempotent. */
  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    for (const follower of [this.#meta, this.#kept]) follower.close();
    await this.#lease.release();
  }

  async #attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      // the next renewal writes it; a loss is signalled by the lease
      const isExpected = error instanceof UnavailableError || error instanceof LostError;
      this.#log[isExpected ? 'debug' : 'error'](
        { key: this.#lease.key, err: error },
        'a claim in the store of the cluster could not be updated',
      );
    }
  }
}

/** Repeats a step after changes, one at a time and no more often than asked. The first one begins at once. */
class Follower {
  readonly #step: () => Promise<void>;
  readonly #everyMs: number;
  #changed = false;
  #isRunning = false;
  readonly #closed = new AbortController();

  constructor(step: () => Promise<void>, everyMs: number) {
    this.#step = step;
    this.#everyMs = everyMs;
  }

  follow(): void {
    this.#changed = true;
    if (!this.#isRunning) void this.#run();
  }

  /** Begins the last step at once, even while one runs. */
  close(): void {
    this.#closed.abort();
    if (this.#changed) void this.#step();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed;
    this.#isRunning = true;
    while (this.#changed && !signal.aborted) {
      this.#changed = false;
      // cut short by `close`
      const rest = this.#everyMs === 0 ? undefined : delay(this.#everyMs, undefined, { signal }).catch(() => undefined);
      await Promise.all([this.#step(), rest]);
    }
    this.#isRunning = false;
  }
}
