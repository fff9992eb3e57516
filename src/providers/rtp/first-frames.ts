import { Watchdog } from '../../lib/watchdog.ts';
import type { LaneEvent } from './lane.ts';

/** Longest wait for the second frame. */
const LONGEST_MS = 250;

/**
 * Holds the first frame of a stream whose reordering is unknown until the second frame shows it. Events of other lanes
 * wait as well, because clocks must be called in order of arrival.
 */
export class FirstFrames {
  readonly #pass: (event: LaneEvent) => void;
  #held: LaneEvent | undefined;
  #later: LaneEvent[] = [];
  #wait: Watchdog | undefined;

  /** @param pass receives the events, in order of arrival */
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
      this.#later.push(event);
    }
  }

  close(): void {
    this.#wait?.close();
    this.#held = undefined;
    this.#later = [];
  }

  #release(following?: LaneEvent): void {
    const held = this.#held;
    const later = this.#later;
    this.#wait?.close();
    this.#held = undefined;
    this.#later = [];
    if (held !== undefined) this.#pass(following?.what === 'frame' ? { ...held, following } : held);
    for (const one of later) this.push(one);
  }
}
