import { MAX_SUBSAMPLES, type Subsample } from '../../containers/fmp4/protection.ts';

export const BLOCK_BYTES = 16;
const MAX_CLEAR = 0xffff;

/** Subsamples of one frame, from the begin on. */
export class SubsampleList {
  readonly #aligned: boolean;
  readonly #least: number;
  readonly #all: Subsample[] = [];
  /** Offset of the first byte that is in no subsample. */
  end = 0;

  /**
   * @param aligned whether only whole blocks are encrypted, as `cenc` asks (ISO/IEC 23001-7, 9.5.2.2)
   * @param least bytes of the shortest range that has a subsample of its own
   */
  constructor(aligned: boolean, least = BLOCK_BYTES) {
    this.#aligned = aligned;
    this.#least = least;
  }

  /** Whether only one more range fits: it then takes the rest of the frame. */
  get full(): boolean {
    return this.#all.length >= MAX_SUBSAMPLES - 2;
  }

  /** Encrypts from an offset up to another. */
  add(from: number, to: number): void {
    const start = this.#aligned ? to - Math.floor((to - from) / BLOCK_BYTES) * BLOCK_BYTES : from;
    if (to - start < this.#least || to === start) return;
    this.#clear(start);
    this.#all[this.#all.length - 1] = { clear: this.#last.clear, encrypted: to - start };
    this.end = to;
  }

  /** @param clear bytes that stay in clear before the last range, where there are more than fit */
  finish(length: number, clear: number): Subsample[] {
    if (this.full && this.end < length) this.add(Math.min(this.end + clear, length), length);
    if (this.end < length) this.#clear(length);
    return this.#all;
  }

  get #last(): Subsample {
    return this.#all.at(-1) as Subsample;
  }

  #clear(until: number): void {
    do {
      const clear = Math.min(until - this.end, MAX_CLEAR);
      this.#all.push({ clear, encrypted: 0 });
      this.end += clear;
    } while (this.end < until);
  }
}
