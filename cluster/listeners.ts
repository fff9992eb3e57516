import type { ConfigListener } from './types.ts';

/** Listeners for changes of the configuration, called one after the other in the order of the changes. */
export class ConfigListeners {
  readonly #listeners = new Set<ConfigListener>();
  readonly #onFault: (error: Error) => void;
  #last: Promise<void> = Promise.resolve();
  /** Changes that are not handled yet. */
  #pending = 0;

  /** @param onFault called when a listener fails; the others are called nevertheless */
  constructor(onFault: (error: Error) => void) {
    this.#onFault = onFault;
  }

  /** @returns its undo */
  add(listener: ConfigListener): () => void {
    const own: ConfigListener = (keys) => listener(keys);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  notify(keys: readonly string[]): void {
    if (keys.length === 0 || this.#listeners.size === 0) return;
    this.#pending++;
    this.#last = this.#last.then(() => this.#call(keys));
  }

  /** Resolves when all listeners have handled all changes so far; undefined when they have. */
  settled(): Promise<void> | undefined {
    return this.#pending === 0 ? undefined : this.#last;
  }

  async #call(keys: readonly string[]): Promise<void> {
    for (const listener of [...this.#listeners]) {
      try {
        await listener(keys);
      } catch (error) {
        this.#onFault(error as Error);
      }
    }
    this.#pending--;
  }
}
