import { setTimeout as delay } from 'node:timers/promises';
import type { ConfigCopy, ConfigState } from '../config-copy.ts';

/** Changes come in bursts, and each save writes everything. */
const PAUSE_MS = 1000;

/** Brings states of the configuration to this disk, beside everything else: one at a time, and the last one counts. */
export class CopySaver {
  readonly #copy: ConfigCopy;
  readonly #onFault: (error: Error) => void;
  #next: ConfigState | undefined;
  #saving: Promise<void> | undefined;
  #hurry = new AbortController();

  constructor(copy: ConfigCopy, onFault: (error: Error) => void) {
    this.#copy = copy;
    this.#onFault = onFault;
  }

  save(state: ConfigState): void {
    this.#next = state;
    this.#saving ??= this.#saveAll();
  }

  /** Resolves when the disk has the last state, or has failed to take it. For the end: nothing pauses any more. */
  async settled(): Promise<void> {
    this.#hurry.abort();
    await this.#saving;
  }

  async #saveAll(): Promise<void> {
    while (this.#next !== undefined) {
      const state = this.#next;
      this.#next = undefined;
      // Redis and the other nodes have it: that this disk does not is no reason to go on without
      await this.#copy.save(state).catch(this.#onFault);
      await delay(PAUSE_MS, undefined, { signal: this.#hurry.signal }).catch(() => undefined);
    }
    this.#saving = undefined;
  }
}
