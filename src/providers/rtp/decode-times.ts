/** Of pictures, how many can be between the decoding of one and its presentation. */
const MAX_REORDERED = 16;
/** The first pictures are decoded so far from each other, in 90 kHz, where nothing tells better. */
const FIRST_STEP = 1800;

/**
 * Decoding times of pictures that come in decoding order with times of presentation alone, as over RTP. Each is the
 * earliest presentation that is not past yet, of as many as pictures are reordered and one more, so nothing is held back.
 * Where nothing tells how many are, they are counted as they come; until that many have come some pictures are shown late.
 */
export class DecodeTimes {
  #reordered = 0;
  #firstStep = FIRST_STEP;
  /** Times of presentation that were not given out as those of decoding, ascending. */
  readonly #pending: number[] = [];
  #last = -Infinity;
  #latest = -Infinity;

  /**
   * Takes how many pictures are reordered, before the first; undefined where that is not known.
   * @param firstStep by how much they are decoded one after the other
   */
  expect(reordered: number | undefined, firstStep = FIRST_STEP): void {
    this.#reordered = Math.max(this.#reordered, Math.min(MAX_REORDERED, reordered ?? 0));
    this.#firstStep = firstStep;
  }

  /** Times to come have nothing to do with those before. */
  restart(): void {
    this.#pending.length = 0;
    this.#last = -Infinity;
    this.#latest = -Infinity;
  }

  /**
   * The decoding time of the next picture, later than the one before and not behind its presentation where that can be.
   * @param step frames from the latest presentation so far to this one, where more than 1: others are to come between
   * @param reordered how many pictures have to wait for those
   */
  next(presentation: number, step = 1, reordered = 0): number {
    const pending = this.#pending;
    if (reordered > this.#reordered && presentation > this.#latest && Number.isFinite(this.#last))
      this.#grow(Math.min(MAX_REORDERED, reordered), (presentation - this.#latest) / step);
    if (presentation < this.#last && this.#reordered < MAX_REORDERED && pending.length === this.#reordered)
      this.#reordered++;
    let at = pending.length;
    while (at > 0 && (pending[at - 1] as number) > presentation) at--;
    pending.splice(at, 0, presentation);
    const missing = this.#reordered + 1 - pending.length;
    const earliest = pending[0] as number;
    if (missing <= 0) pending.shift();
    this.#latest = Math.max(this.#latest, presentation);
    this.#last = Math.max(this.#last + 1, earliest - Math.max(0, missing) * this.#firstStep);
    return this.#last;
  }

  /** Makes room for pictures that will be decoded before the next one is shown. @param frame what a frame lasts */
  #grow(reordered: number, frame: number): void {
    const more = reordered - this.#reordered;
    const next = this.#pending[0] ?? this.#last + frame;
    const room = (next - this.#last) / (more + 1);
    for (let i = more; i > 0; i--) this.#pending.unshift(Math.round(this.#last + i * room));
    this.#reordered = reordered;
  }
}
