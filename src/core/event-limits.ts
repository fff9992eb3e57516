/** Largest event that is taken: what a PES packet holds, and what every other way takes. */
export const MAX_EVENT_BYTES = 64_000;
const EVENTS_PER_SECOND = 100;

/** Bounds the events that one source adds to a stream: so many a second, and as many at once. */
export class EventRate {
  #left = EVENTS_PER_SECOND;
  #at = -Infinity;

  /** Whether one more fits. @param now milliseconds of any steady clock */
  take(now = performance.now()): boolean {
    this.#left = Math.min(EVENTS_PER_SECOND, this.#left + ((now - this.#at) * EVENTS_PER_SECOND) / 1000);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
