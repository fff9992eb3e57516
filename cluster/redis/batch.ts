export interface BatchOptions {
  /** How long the first item waits for others, in milliseconds. */
  readonly waitMs: number;
  /** So many items do not wait for more. */
  readonly most: number;
}

interface Waiting<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/** Collects items for a moment, for one command that handles all of them. */
export class Batch<T, R> {
  readonly #handle: (items: readonly T[]) => Promise<readonly R[]>;
  readonly #options: BatchOptions;
  #waiting: Waiting<T, R>[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @param handle returns a result for each item */
  constructor(handle: (items: readonly T[]) => Promise<readonly R[]>, options: BatchOptions) {
    this.#handle = handle;
    this.#options = options;
  }

  /** @returns the result of the item. Rejects as the command that handles it does. */
  add(item: T): Promise<R> {
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    this.#waiting.push({ item, resolve, reject });
    if (this.#waiting.length >= this.#options.most) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), this.#options.waitMs);
    return promise;
  }

  /** Handles the queued items at once: their command begins before anything that the caller does next. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    this.#handle(waiting.map(({ item }) => item)).then(
      (results) => waiting.forEach(({ resolve }, at) => resolve(results[at] as R)),
      (error: unknown) => waiting.forEach(({ reject }) => reject(error)),
    );
  }
}
