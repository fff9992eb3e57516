/** Locks within one process. They are granted in the order of the requests. */
export class Locks {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(key: string, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const turn = (before ?? Promise.resolve()).then(() => fn(new AbortController().signal));
    const settled = turn.catch(() => undefined);
    this.#last.set(key, settled);
    try {
      return await turn;
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    }
  }
}
