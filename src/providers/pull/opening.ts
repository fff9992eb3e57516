import type { PullSource } from './source.ts';

/** A connection to an origin, from the first attempt to make it to its end. */
export class Opening {
  /** Rejects when there is no connection, or `close` comes first. */
  readonly source: Promise<PullSource>;
  readonly #stop = new AbortController();
  #opened: PullSource | undefined;

  constructor(open: (signal: AbortSignal) => Promise<PullSource>) {
    this.source = open(this.#stop.signal);
    this.source.then(
      (source) => (this.#opened = source),
      // the user of `source` reports it
      () => undefined,
    );
  }

  /** Ends it, whether it is open yet or not. */
  close(): void {
    if (this.#opened !== undefined) return this.#opened.close();
    this.#stop.abort();
    // it may have opened in the same turn
    this.source.then(
      (late) => late.close(),
      () => undefined,
    );
  }
}
