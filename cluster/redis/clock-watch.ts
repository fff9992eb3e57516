const WRONG_MS = 500;
/** A clock is right again when it differs by less than this: one at the limit is not reported again and again. */
const RIGHT_MS = 400;
/** Comparisons in a row that have to agree: a single one may come from a suspended process. */
const AGREEING = 3;

/** The clock of this node differs from that of Redis, or does not any more. */
export interface ClockReport {
  readonly isWrong: boolean;
  /** Milliseconds by which this node's clock is ahead; negative when it is behind. */
  readonly aheadMs: number;
}

/** Compares this node's clock with that of Redis, by which all nodes are compared, and reports when the result changes. */
export class ClockWatch {
  readonly #onReport: (report: ClockReport) => void;
  #isWrong = false;
  /** Comparisons in a row that differ from what was reported last. */
  #differing = 0;

  constructor(onReport: (report: ClockReport) => void) {
    this.#onReport = onReport;
  }

  /**
   * @param offsetMs what has to be added to this node's clock
   * @param roundTripMs of the call that measured it: it may be wrong by half of that
   */
  observe(offsetMs: number, roundTripMs: number): void {
    const difference = Math.abs(offsetMs);
    const error = roundTripMs / 2;
    const hasChanged = this.#isWrong ? difference + error < RIGHT_MS : difference - error > WRONG_MS;
    this.#differing = hasChanged ? this.#differing + 1 : 0;
    if (this.#differing < AGREEING) return;
    this.#differing = 0;
    this.#isWrong = !this.#isWrong;
    this.#onReport({ isWrong: this.#isWrong, aheadMs: Math.round(-offsetMs) });
  }
}
