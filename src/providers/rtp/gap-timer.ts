/** Stream that waits for missing packets. */
export interface Waiting {
  /** Time of the next `tick`, in milliseconds of the monotonic clock; undefined when nothing is held. */
  readonly deadline: number | undefined;
  /** Stops waiting for packets whose wait is over. */
  tick(now: number): void;
}

/** Ends the waits of several streams for missing packets with one timer. */
export class GapTimer {
  readonly #streams: readonly Waiting[];
  #timer: NodeJS.Timeout | undefined;
  #turn: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(streams: readonly Waiting[]) {
    this.#streams = streams;
  }

  /** To be called after each packet of a stream. @param now of the monotonic clock */
  heard(stream: Waiting, now: number): void {
    if (this.#timer !== undefined || this.#closed) return;
    const { deadline } = stream;
    if (deadline !== undefined) this.#timer = this.#waitUntil(deadline, now);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearImmediate(this.#turn);
  }

  #waitUntil(deadline: number, now: number): NodeJS.Timeout {
    return setTimeout(
      () => {
        // packets already in a socket come first
        this.#turn = setImmediate(() => this.#giveUp());
      },
      Math.max(1, deadline - now),
    ).unref();
  }

  #giveUp(): void {
    this.#timer = undefined;
    const now = performance.now();
    let next = Infinity;
    for (const stream of this.#streams) {
      stream.tick(now);
      next = Math.min(next, stream.deadline ?? Infinity);
    }
    if (next < Infinity && !this.#closed) this.#timer = this.#waitUntil(next, now);
  }
}
