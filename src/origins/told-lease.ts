import { LostError, UnavailableError, type Json, type Lease } from '#cluster';
import type { Logger } from '../log.ts';

/** A lease whose meta follows what it is made of. */
export class ToldLease {
  readonly #lease: Lease;
  readonly #meta: () => Json;
  readonly #log: Logger;
  /** Something changed since it was told last. */
  #changed = false;
  #isTelling = false;
  #released = false;

  /** @param meta what others are to know now */
  constructor(lease: Lease, meta: () => Json, log: Logger) {
    this.#lease = lease;
    this.#meta = meta;
    this.#log = log;
  }

  get valid(): boolean {
    return this.#lease.valid;
  }

  /** Tells the cluster how it is now; of several changes at once the last counts. */
  tell(): void {
    this.#changed = true;
    if (!this.#isTelling) void this.#tellAll();
  }

  /** Neither waits for the other: who claims the key next finds it free, and what was kept last. Idempotent. */
  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    if (this.#changed) void this.#update();
    await this.#lease.release();
  }

  async #tellAll(): Promise<void> {
    this.#isTelling = true;
    while (this.#changed && !this.#released) {
      this.#changed = false;
      await this.#update();
    }
    this.#isTelling = false;
  }

  async #update(): Promise<void> {
    try {
      await this.#lease.update(this.#meta());
    } catch (error) {
      // it is told with the next renewal; and who has the lease hears of a loss
      if (!(error instanceof UnavailableError || error instanceof LostError)) throw error;
      this.#log.debug({ key: this.#lease.key, reason: error.message }, 'a claim could not be brought up to date');
    }
  }
}
