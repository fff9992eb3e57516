/** Steps that run one after the other. */
export class Steps {
  /** By their keys, in their order: those that have not begun. */
  readonly #pending = new Map<string | symbol, () => Promise<void>>();
  readonly #onFault: (error: unknown) => void;
  #working: Promise<void> | undefined;

  /** @param onFault called with what a step throws */
  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault;
  }

  /** Number of those that have not begun. */
  get size(): number {
    return this.#pending.size;
  }

  /** Resolves when none is left; undefined if none is. Never rejects. */
  get over(): Promise<void> | undefined {
    return this.#working;
  }

  /** Runs a step after those before it. @param key of which the last one is enough: another that has not begun does not run */
  add(step: () => Promise<void>, key: string | symbol = Symbol()): void {
    this.#pending.delete(key);
    this.#pending.set(key, step);
    this.#working ??= this.#work();
  }

  /** Runs none of those that have not begun. */
  drop(): void {
    this.#pending.clear();
  }

  async #work(): Promise<void> {
    for (;;) {
      const [next] = this.#pending;
      if (next === undefined) break;
      const [key, step] = next;
      this.#pending.delete(key);
      try {
        await step();
      } catch (error) {
        this.#onFault(error);
      }
    }
    this.#working = undefined;
  }
}
