import type { LaneEvent } from './lane.ts';

/** A first picture waits no longer for the next one, in milliseconds by which everything came. */
const LONGEST_MS = 250;

/**
 * Holds the first picture of streams that do not tell how their pictures are reordered until the next one is there, which
 * shows it; all that comes meanwhile stays behind it, for clocks are asked in the order of arrival.
 */
export class FirstPictures {
  readonly #pass: (event: LaneEvent) => void;
  #held: LaneEvent | undefined;
  #behind: LaneEvent[] = [];

  /** @param pass takes what comes, in the same order */
  constructor(pass: (event: LaneEvent) => void) {
    this.#pass = pass;
  }

  push(event: LaneEvent): void {
    const held = this.#held;
    if (held === undefined) {
      if (event.what === 'frame' && event.lane.looksAhead(event.data)) this.#held = event;
      else this.#pass(event);
      return;
    }
    const isNext = event.lane === held.lane;
    if (!isNext && event.now - held.now < LONGEST_MS) {
      this.#behind.push(event);
      return;
    }
    this.#held = undefined;
    this.#pass(isNext && event.what === 'frame' ? { ...held, following: event } : held);
    const behind = this.#behind;
    this.#behind = [];
    for (const one of behind) this.push(one);
    this.push(event);
  }
}
