import { setTimeout as delay } from 'node:timers/promises';
import type { ConfigCopy, ConfigState } from '../config-copy.ts';

/** Changes come in bursts, and each save writes everything. */
const PAUSE_MS = 1000;

/** Writes the configuration to this disk in the background: one state at a time, skipping all but the last. */
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
      // Redis and the other nodes have it, so this node continues without a copy on its disk
      await this.#copy.save(state).catch(this.#onFault);
      await delay(PAUSE_MS, undefined, { signal: this.#hurry.signal }).catch(() => undefined);
    }
    this.#saving = undefined;
  }
}
