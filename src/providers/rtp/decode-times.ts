/** Of pictures, how many can be between the decoding of one and its presentation. */
const MAX_REORDERED = 16;
/** The first pictures are decoded so far from each other, in 90 kHz. */
const FIRST_STEP = 1800;

/**
 * Decoding times of pictures that come in decoding order with times of presentation alone, as over RTP. Each is the
 * earliest presentation that is not past yet, of as many as pictures are reordered and one more, so nothing is held back.
 * Where the decoder configuration does not tell how many are, they are counted as they come; until that many have come
 * some pictures are shown late.
 */
export class DecodeTimes {
  #reordered = 0;
  /** Times of presentation that were not given out as those of decoding, ascending. */
  readonly #pending: number[] = [];
  #last = -Infinity;

  /** Takes what the decoder configuration tells of reordered pictures; undefined when it does not. */
  expect(reordered: number | undefined): void {
    this.#reordered = Math.max(this.#reordered, Math.min(MAX_REORDERED, reordered ?? 0));
  }

  /** Times to come have nothing to do with those before. */
  restart(): void {
    this.#pending.length = 0;
    this.#last = -Infinity;
  }

  /** The decoding time of the next picture, later than the one before and not behind its presentation where that can be. */
  next(presentation: number): number {
    const pending = this.#pending;
    if (presentation < this.#last && this.#reordered < MAX_REORDERED && pending.length === this.#reordered)
      this.#reordered++;
    let at = pending.length;
    while (at > 0 && (pending[at - 1] as number) > presentation) at--;
    pending.splice(at, 0, presentation);
    const missing = this.#reordered + 1 - pending.length;
    const earliest = pending[0] as number;
    if (missing <= 0) pending.shift();
    this.#last = Math.max(this.#last + 1, earliest - Math.max(0, missing) * FIRST_STEP);
    return this.#last;
  }
}
