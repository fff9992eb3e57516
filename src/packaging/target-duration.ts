import { targetOf } from './listed-duration.ts';

/** EXT-X-TARGETDURATION of a stream. It grows only if key frames are further apart than configured. */
export class TargetDuration {
  readonly #segmentDuration: number;
  #seconds: number;

  /** @param segmentDuration seconds after which a segment ends at the next key frame */
  constructor(segmentDuration: number) {
    this.#segmentDuration = segmentDuration;
    this.#seconds = Math.max(1, Math.round(segmentDuration));
  }

  /** Whole seconds. */
  get seconds(): number {
    return this.#seconds;
  }

  /** @param duration of a segment, in seconds */
  note(duration: number): void {
    this.#seconds = Math.max(this.#seconds, targetOf(duration));
  }

  /**
   * Records the interval of key frames: where it does not fit the configuration, segments are longer, and the target
   * must be right early.
   * @param interval seconds
   * @param first whether it is the first that was measured
   * @param frame seconds that a frame lasts
   */
  noteInterval(interval: number, first: boolean, frame: number): void {
    if (interval > this.#segmentDuration) this.note(interval);
    else if (first) this.note(Math.ceil((this.#segmentDuration - frame) / interval) * interval);
  }
}
