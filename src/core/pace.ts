/** In seconds: a source whose packets come ahead of their times by so much more than before sends faster than they are played. */
const GROWTH_SECONDS = 0.5;
/** After so many packets in a row that do not, and so many seconds of them, a source sends as fast as they are played. */
const PACKETS = 25;
const SECONDS = 1;

/**
 * How packets of a source come, beside the times that they tell. Where they come as fast as they are played, one that comes early
 * may tell a wrong time; in what was kept for who joins, and in files, all come early, and it tells nothing.
 */
export class Pace {
  /** By how much a packet was ahead of its arrival when that was most, and when what is counted began, in seconds. */
  #most = -Infinity;
  #from = -Infinity;
  #fromAt = 0;
  #count = 0;

  /** Takes note of a packet whose time is believed. Both are in seconds, on any two clocks. */
  note(time: number, arrival: number): void {
    const lead = time - arrival;
    if (lead > this.#most) this.#most = lead;
    if (lead - this.#from <= GROWTH_SECONDS) {
      this.#count++;
    } else {
      this.#from = lead;
      this.#fromAt = arrival;
      this.#count = 0;
    }
  }

  /** Whether a packet comes earlier than any before by more than so many seconds. */
  isEarly(time: number, arrival: number, by: number): boolean {
    return this.#count >= PACKETS && arrival - this.#fromAt >= SECONDS && time - arrival > this.#most + by;
  }

  /** Times to come have nothing to do with those before. */
  restart(): void {
    this.#most = -Infinity;
    this.#from = -Infinity;
    this.#count = 0;
  }
}
