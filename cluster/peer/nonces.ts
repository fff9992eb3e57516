/** More calls than this in one window are refused, rather than remembered without end. */
const MAX = 500_000;

/** Nonces of calls, each good once. They are remembered for one to two windows. */
export class Nonces {
  readonly #windowMs: number;
  #young = new Set<string>();
  #old = new Set<string>();
  #since = performance.now();

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** @returns false for one that was used before */
  use(nonce: string): boolean {
    const age = performance.now() - this.#since;
    if (age > this.#windowMs) {
      this.#old = age > 2 * this.#windowMs ? new Set() : this.#young;
      this.#young = new Set();
      this.#since = performance.now();
    }
    if (this.#young.size >= MAX || this.#young.has(nonce) || this.#old.has(nonce)) return false;
    this.#young.add(nonce);
    return true;
  }
}
