/** Lets those who wait for something go on with something else. */
export class Interrupts {
  readonly #listeners = new Set<() => void>();

  /** Whoever waits now goes on. */
  fire(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** What comes of a promise, or undefined when `fire` is called before that. */
  unlessFired<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const listener = (): void => resolve(undefined);
      this.#listeners.add(listener);
      promise.then(resolve, reject).finally(() => this.#listeners.delete(listener));
    });
  }
}
