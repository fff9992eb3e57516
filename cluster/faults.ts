const EVERY_MS = 1000;

/** Reports faults at most once a second, and the same message at most once a minute. */
export class Faults {
  readonly #onFault: (error: Error) => void;
  #last = -Infinity;
  #message = '';

  constructor(onFault: (error: Error) => void) {
    this.#onFault = onFault;
  }

  report(error: Error): void {
    const quiet = error.message === this.#message ? 60 * EVERY_MS : EVERY_MS;
    if (performance.now() - this.#last < quiet) return;
    this.#last = performance.now();
    this.#message = error.message;
    this.#onFault(error);
  }
}
