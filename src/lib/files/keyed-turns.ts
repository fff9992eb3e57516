/** Steps that share a key run one after the other; others beside them. */
export class KeyedTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** @throws what the step throws */
  async take<T>(key: string, step: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(step, step);
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}
