export interface FrameCounts {
  readonly seen: number;
  readonly due: number;
}

/** Which numbered frames came: a range for each stretch without a gap, so that hours of them take no memory. */
export class FrameLog {
  readonly #ranges: { readonly first: number; last: number }[] = [];

  /** @param frame its number; one that is not newer than the last was counted already */
  add(frame: number): void {
    const range = this.#ranges.at(-1);
    if (range !== undefined && frame <= range.last) return;
    if (range?.last === frame - 1) range.last = frame;
    else this.#ranges.push({ first: frame, last: frame });
  }

  /** The newest that came; -1 before the first one. */
  get last(): number {
    return this.#ranges.at(-1)?.last ?? -1;
  }

  /** Frames that came, of those from the first one that came to `last`. */
  counts(last: number): FrameCounts {
    const from = this.#ranges[0]?.first;
    if (from === undefined) return { seen: 0, due: last + 1 };
    const within = this.#ranges.map((range) => Math.max(0, Math.min(last, range.last) - range.first + 1));
    return { seen: within.reduce((sum, count) => sum + count, 0), due: Math.max(0, last - from + 1) };
  }
}

/** The smallest share of frames that any of some viewers saw. */
export function worstShare(viewers: readonly FrameCounts[]): number {
  return Math.min(...viewers.map(({ seen, due }) => (due === 0 ? 0 : seen / due)));
}
