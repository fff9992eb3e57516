/** Something that waits for packets that are missing. */
export interface Waiting {
  /** When `tick` has something to do, in milliseconds of the monotonic clock; undefined when nothing is held up. */
  readonly deadline: number | undefined;
  /** Goes on without what was waited for long enough. */
  tick(now: number): void;
}

/** Gives up what is missing in any of several streams when its time has come. */
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

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearImmediate(this.#turn);
  }

  #waitUntil(deadline: number, now: number): NodeJS.Timeout {
    return setTimeout(
      () => {
        // what is in a socket already has its turn first
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
