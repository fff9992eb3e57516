import type { NodeIdentity } from '#cluster';

const SHUNNED_MS = 5000;

/** Nodes that did not give what they were asked for, for some seconds. */
export class ShunnedNodes {
  /** By incarnation: when, in milliseconds of the monotonic clock. */
  readonly #since = new Map<string, number>();

  add({ incarnation }: NodeIdentity): void {
    this.#since.delete(incarnation);
    this.#since.set(incarnation, performance.now());
  }

  /** Those that are not asked at present. */
  get incarnations(): ReadonlySet<string> {
    for (const [incarnation, since] of this.#since) {
      if (performance.now() - since < SHUNNED_MS) break;
      this.#since.delete(incarnation);
    }
    return new Set(this.#since.keys());
  }
}
