/** Most frames between the decoding and the presentation of one. */
const MAX_REORDERED = 16;
/** Default interval of the first decoding times, in 90 kHz. */
const FIRST_STEP = 1800;

/**
 * Computes decoding times of frames that arrive in decoding order with presentation times only, as over RTP. Each is the
 * earliest presentation time still pending, of one more than the number of reordered frames, so nothing is held back. An
 * unknown number is counted from the frames; until then some frames are shown late.
 */
export class DecodeTimes {
  #reordered = 0;
  #firstStep = FIRST_STEP;
  readonly #pending: number[] = [];
  #last = -Infinity;
  #latest = -Infinity;

  /**
   * Sets the number of reordered frames, before the first; undefined when unknown.
   * @param firstStep interval of the first decoding times
   */
  expect(reordered: number | undefined, firstStep = FIRST_STEP): void {
    this.#reordered = Math.max(this.#reordered, Math.min(MAX_REORDERED, reordered ?? 0));
    this.#firstStep = firstStep;
  }

  /** Forgets all times, before unrelated ones. */
  restart(): void {
    this.#pending.length = 0;
    this.#last = -Infinity;
    this.#latest = -Infinity;
  }

  /**
   * Decoding time of the next frame: later than the previous one and, if possible, not after its presentation.
   * @param step frames from the latest presentation to this one; more than 1 if others are to come between
   * @param reordered number of frames that wait for those
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

  /** Makes room for frames to be decoded before the next one is shown. @param frame duration of a frame */
  #grow(reordered: number, frame: number): void {
    const more = reordered - this.#reordered;
    const next = this.#pending[0] ?? this.#last + frame;
    const room = (next - this.#last) / (more + 1);
    for (let i = more; i > 0; i--) this.#pending.unshift(Math.round(this.#last + i * room));
    this.#reordered = reordered;
  }
}
