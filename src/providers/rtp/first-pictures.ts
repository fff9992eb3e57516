import { Watchdog } from '../../lib/watchdog.ts';
import type { LaneEvent } from './lane.ts';

/** A first picture waits no longer for the next one, in milliseconds. */
const LONGEST_MS = 250;

/**
 * Holds the first picture of streams that do not tell how their pictures are reordered until the next one is there, which
 * shows it; all that comes meanwhile stays behind it, for clocks are asked in the order of arrival.
 */
export class FirstPictures {
  readonly #pass: (event: LaneEvent) => void;
  #held: LaneEvent | undefined;
  #behind: LaneEvent[] = [];
  #wait: Watchdog | undefined;

  /** @param pass takes what comes, in the same order */
  constructor(pass: (event: LaneEvent) => void) {
    this.#pass = pass;
  }

  push(event: LaneEvent): void {
    const held = this.#held;
    if (held === undefined) {
      if (event.what !== 'frame' || !event.lane.looksAhead(event.data)) return this.#pass(event);
      this.#held = event;
      this.#wait = new Watchdog(LONGEST_MS, () => this.#release()).unref();
    } else if (event.lane === held.lane) {
      this.#release(event);
      this.push(event);
    } else {
      this.#behind.push(event);
    }
  }

  /** Nothing more is passed. Idempotent. */
  close(): void {
    this.#wait?.close();
    this.#held = undefined;
    this.#behind = [];
  }

  #release(following?: LaneEvent): void {
    const held = this.#held;
    const behind = this.#behind;
    this.#wait?.close();
    this.#held = undefined;
    this.#behind = [];
    if (held !== undefined) this.#pass(following?.what === 'frame' ? { ...held, following } : held);
    for (const one of behind) this.push(one);
  }
}
