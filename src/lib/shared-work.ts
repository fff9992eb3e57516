import { unlessAborted } from './unless-aborted.ts';

/** Work that several wait for. It is aborted when all of them have left. */
export class SharedWork<T> {
  readonly #stop = new AbortController();
  readonly #result: Promise<T>;
  #waiting = 0;
  #isDone = false;

  /** @param start begins the work; the signal aborts it */
  constructor(start: (signal: AbortSignal) => Promise<T>) {
    this.#result = start(this.#stop.signal);
    const end = (): void => void (this.#isDone = true);
    // those that wait learn of a failure
    this.#result.then(end, end);
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether all have left before its end: later ones need to begin anew. */
  get isLeft(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Waits for the result, or until a signal aborts. @throws what the work throws; the reason of the signal */
  async join(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    this.#waiting++;
    try {
      if (signal === undefined) return await this.#result;
      const result = await unlessAborted(this.#result, signal);
      signal.throwIfAborted();
      return result as T;
    } finally {
      if (--this.#waiting === 0 && !this.#isDone) this.#stop.abort();
    }
  }
}
