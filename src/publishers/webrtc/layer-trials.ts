/** How long a layer that had to be left is not tried again; mediasoup itself waits as long for the first time. */
const FIRST_MS = 10_000;
const LAST_MS = 120_000;
/** A layer that was sent for so long was no failure. */
const LASTED_MS = 30_000;

/**
 * When the layers of one viewer's video may be tried: one that had to be left not for a while, each time for a longer
 * one. A link that lets short bursts through looks wide to mediasoup again and again, and every try ends in a frozen
 * picture.
 *
 * Times are milliseconds since the Unix epoch.
 */
export class LayerTrials {
  readonly #from: number[];
  readonly #waits: number[];
  #layer = -1;
  /** Since when it is sent. */
  #since = 0;

  constructor(layers: number) {
    this.#from = Array.from({ length: layers }, () => 0);
    this.#waits = Array.from({ length: layers }, () => 0);
  }

  /** The one that is sent, -1 for none. */
  get layer(): number {
    return this.#layer;
  }

  /** Another layer is sent. @param forced the link did not carry the one before, if that was a better one */
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
