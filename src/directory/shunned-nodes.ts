import type { NodeIdentity } from '#cluster';

const SHUNNED_MS = 5000;

/** Nodes that recently failed a request: not asked again for some seconds. */
export class ShunnedNodes {
  /** Time of the failure by incarnation, in milliseconds of the monotonic clock. */
  readonly #since = new Map<string, number>();

  add({ incarnation }: NodeIdentity): void {
    this.#since.delete(incarnation);
    this.#since.set(incarnation, performance.now());
  }

  get incarnations(): ReadonlySet<string> {
    for (const [incarnation, since] of this.#since) {
      if (performance.now() - since < SHUNNED_MS) break;
      this.#since.delete(incarnation);
    }
    return new Set(this.#since.keys());
  }
}
