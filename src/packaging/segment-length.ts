/**
 * After how many seconds a segment ends at the next key frame. The first segments of a stream are short and grow: each is to
 * last no longer than the two before it together. The parts of those two are listed beside those of the growing one, and
 * hls.js (1.7) loads parts only while the complete segments among them last longer than the growing one. Where they do not,
 * a player that joins waits for the growing one's end.
 */
export class SegmentLength {
  readonly #first: number;
  readonly #most: number;
  #seconds: number;
  /** What the newest complete segment lasted. */
  #lasted = 0;

  /**
   * @param first seconds, of the first segment, and of none less
   * @param most seconds, of all after the short ones
   */
  constructor(first: number, most: number) {
    this.#first = first;
    this.#most = most;
    this.#seconds = first;
  }

  /** Of the segment that grows. */
  get seconds(): number {
    return this.#seconds;
  }

  /** The next segment is the first one. */
  restart(): void {
    this.#seconds = this.#first;
    this.#lasted = 0;
  }

  /** The growing segment ended after some seconds; any number, where the clock jumped. */
  end(lasted: number): void {
    this.#seconds = Math.min(this.#most, Math.max(this.#first, this.#lasted + lasted));
    this.#lasted = lasted;
  }
}
