export interface FrameCounts {
  readonly seen: number;
  readonly due: number;
}

/** Which numbered frames came. */
export class FrameLog {
  readonly #frames: number[] = [];

  /** @param frame its number; one that is not newer than the last was counted already */
  add(frame: number): void {
    if (frame > (this.#frames.at(-1) ?? -1)) this.#frames.push(frame);
  }

  /** Frames that came, of those from the first one that came to `last`. */
  counts(last: number): FrameCounts {
    const first = this.#frames[0];
    if (first === undefined) return { seen: 0, due: last + 1 };
    return { seen: this.#frames.filter((frame) => frame <= last).length, due: Math.max(0, last - first + 1) };
  }
}
