/** In seconds: a source whose packets come ahead of their times by so much more than before sends faster than they are played. */
const GROWTH_SECONDS = 0.5;
/** After so many packets in a row that do not, and so many seconds of them, a source sends as fast as they are played. */
const PACKETS = 25;
const SECONDS = 1;
/** Leads are forgotten after one to two spans: the source may have stood still since, or its clock may be slow. */
const SPAN_SECONDS = 30;

/**
 * Compares the arrival of a source's packets with their timestamps. If they come as fast as they are played, a packet that comes early
 * may have a wrong timestamp. In a burst, of a cache for new viewers or of a file, all packets come early, and that means nothing.
 */
export class Pace {
  /** Greatest lead of a packet's timestamp over its arrival in this span and in the one before, in seconds. */
  #most = -Infinity;
  #mostBefore = -Infinity;
  #spanAt = -Infinity;
  /** Lead and arrival of the packet at which counting began. */
  #from = -Infinity;
  #fromAt = 0;
  #count = 0;

  /** Takes note of a packet whose time is believed. Both are in seconds, on any two clocks. */
  note(time: number, arrival: number): void {
    const lead = time - arrival;
    if (arrival - this.#spanAt >= SPAN_SECONDS) {
      this.#mostBefore = this.#most;
      this.#most = lead;
      this.#spanAt = arrival;
    }
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
    if (this.#count < PACKETS || arrival - this.#fromAt < SECONDS) return false;
    return time - arrival > Math.max(this.#most, this.#mostBefore) + by;
  }

  /** Whether a packet comes so long after another as it is played after it: what is sent at once is not. */
  isInTime(step: number, passed: number): boolean {
    return step - passed <= GROWTH_SECONDS;
  }

  /** The source goes on as fast as before, from another time: that of a packet that comes now. */
  move(time: number, arrival: number): void {
    const lead = time - arrival;
    this.#from += lead - Math.max(this.#most, this.#mostBefore);
    this.#most = lead;
    this.#mostBefore = -Infinity;
  }

  /** Times to come have nothing to do with those before. */
  restart(): void {
    this.#most = -Infinity;
    this.#mostBefore = -Infinity;
    this.#from = -Infinity;
    this.#count = 0;
  }
}
