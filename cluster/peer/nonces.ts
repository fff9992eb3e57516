/** More calls than this in one window are rejected, so that memory is bounded. */
const MAX = 500_000;

/** Nonces of calls, each valid once. They are kept for one to two windows. */
export class Nonces {
  readonly #windowMs: number;
  readonly #max: number;
  #young = new Set<string>();
  #old = new Set<string>();
  #since = performance.now();

  /** @param max how many there may be in one window */
  constructor(windowMs: number, max = MAX) {
    this.#windowMs = windowMs;
    this.#max = max;
  }

  /** @returns why a nonce is rejected: it was used before, or there are too many to remember */
  use(nonce: string): 'repeated' | 'busy' | undefined {
    const age = performance.now() - this.#since;
    if (age > this.#windowMs) {
      this.#old = age > 2 * this.#windowMs ? new Set() : this.#young;
      this.#young = new Set();
      this.#since = performance.now();
    }
    if (this.#young.has(nonce) || this.#old.has(nonce)) return 'repeated';
    if (this.#young.size >= this.#max) return 'busy';
    this.#young.add(nonce);
    return undefined;
  }
}
