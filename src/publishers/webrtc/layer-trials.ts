/** Pause before a failed layer is tried again; mediasoup itself waits as long for the first time. */
const FIRST_MS = 10_000;
const LAST_MS = 120_000;
/** A layer that was sent for so long did not fail. */
const LASTED_MS = 30_000;

/**
 * Times at which the layers of one viewer's video may be tried: one that failed is left out for a while, longer each time. A link
 * that lets short bursts through looks wide to mediasoup again and again, and every try ends in a frozen video.
 *
 * Times are milliseconds since the Unix epoch.
 */
export class LayerTrials {
  readonly #from: number[];
  readonly #waits: number[];
  #layer = -1;
  #since = 0;

  constructor(layers: number) {
    this.#from = Array.from({ length: layers }, () => 0);
    this.#waits = Array.from({ length: layers }, () => 0);
  }

  /** The layer that is sent, -1 for none. */
  get layer(): number {
    return this.#layer;
  }

  /** Notes another layer. @param forced the link did not carry the one before, if that was a better one */
  sent(layer: number, forced: boolean, now: number): void {
    const left = this.#layer;
    if (forced && layer < left) {
      const before = now - this.#since < LASTED_MS ? (this.#waits[left] ?? 0) * 2 : 0;
      const wait = Math.min(LAST_MS, Math.max(FIRST_MS, before));
      this.#waits[left] = wait;
      this.#from[left] = now + wait;
    }
    this.#layer = layer;
    this.#since = now;
  }

  /** When a layer may be tried again. */
  from(layer: number): number {
    return this.#from[layer] ?? 0;
  }
}
