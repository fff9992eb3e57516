import type { ConfigListener } from './types.ts';

/** Who hears of changes of the configuration: one call after the other, in the order of the changes. */
export class ConfigListeners {
  readonly #listeners = new Set<ConfigListener>();
  readonly #onFault: (error: Error) => void;
  #last: Promise<void> = Promise.resolve();

  /** @param onFault hears of a listener that failed; the others are called all the same */
  constructor(onFault: (error: Error) => void) {
    this.#onFault = onFault;
  }

  /** Returns its undo. */
  add(listener: ConfigListener): () => void {
    const own: ConfigListener = (keys) => listener(keys);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  notify(keys: readonly string[]): void {
    if (keys.length === 0 || this.#listeners.size === 0) return;
    this.#last = this.#last.then(() => this.#call(keys));
  }

  /** Resolves when all have applied what they were told. */
  settled(): Promise<void> {
    return this.#last;
  }

  async #call(keys: readonly string[]): Promise<void> {
    for (const listener of [...this.#listeners]) {
      try {
        await listener(keys);
      } catch (error) {
        this.#onFault(error as Error);
      }
    }
  }
}
