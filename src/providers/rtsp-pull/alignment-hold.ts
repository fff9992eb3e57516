import type { LaneEvent } from '../rtp/lane.ts';

/** Reports come every few seconds; who sends none until then is taken as it comes. */
const LONGEST_MS = 2500;
const MAX_EVENTS = 2048;
const MAX_BYTES = 16 * 1024 * 1024;

/** Holds back what comes until the tracks have told how they are to each other, or were waited for. */
export class AlignmentHold {
  readonly #isAligned: () => boolean;
  readonly #output: (event: LaneEvent) => void;
  #held: LaneEvent[] | undefined = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(isAligned: () => boolean, output: (event: LaneEvent) => void) {
    this.#isAligned = isAligned;
    this.#output = output;
  }

  push(event: LaneEvent): void {
    const held = this.#held;
    if (held === undefined) return this.#output(event);
    held.push(event);
    this.#bytes += event.data.length;
    this.#timer ??= setTimeout(() => this.#release(), LONGEST_MS).unref();
    if (held.length >= MAX_EVENTS || this.#bytes >= MAX_BYTES || this.#isAligned()) this.#release();
  }

  /** Lets go of what is held. Idempotent. */
  close(): void {
    clearTimeout(this.#timer);
    this.#held = this.#held && [];
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    clearTimeout(this.#timer);
    for (const event of held) this.#output(event);
  }
}
