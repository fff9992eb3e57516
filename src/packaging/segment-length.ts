/**
 * Seconds after which a segment ends at the next key frame. The first segments of a stream are short and grow: each lasts
 * no longer than the two before it together. The parts of those two are listed beside those of the growing one, and
 * hls.js (1.7) loads parts only while the complete segments among them last longer than the growing one. Otherwise a
 * player that joins waits until the growing one ends.
 */
export class SegmentLength {
  readonly #first: number;
  readonly #most: number;
  #seconds: number;
  /** Seconds of the newest complete segment. */
  #lasted = 0;

  /**
   * @param first seconds of the first segment, the shortest
   * @param most seconds of segments after the short ones
   */
  constructor(first: number, most: number) {
    this.#first = first;
    this.#most = most;
    this.#seconds = first;
  }

  /** Seconds of the growing segment. */
  get seconds(): number {
    return this.#seconds;
  }

  /** Makes the next segment as short as the first. */
  restart(): void {
    this.#seconds = this.#first;
    this.#lasted = 0;
  }

  /** Ends the growing segment. @param lasted seconds; any number where the clock jumped */
  end(lasted: number): void {
    this.#seconds = Math.min(this.#most, Math.max(this.#first, this.#lasted + lasted));
    this.#lasted = lasted;
  }
}
