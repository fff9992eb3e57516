import { toSeconds, type Timebase } from '../../core/timebase.ts';

/** A difference between media time and wall clock beyond this is a jump of the source, not jitter. */
const JUMP_MS = 2000;

/** Gives every instant of a stream one wall-clock time, the same for all its tracks, so that they can be aligned. */
export class MediaClock {
  #offsetMs: number | undefined;

  /** @param now milliseconds since the Unix epoch at which the packet is at hand */
  wallMs(time: number, timebase: Timebase, now: number): number {
    const mediaMs = toSeconds(time, timebase) * 1000;
    if (this.#offsetMs === undefined || Math.abs(mediaMs + this.#offsetMs - now) > JUMP_MS) {
      this.#offsetMs = now - mediaMs;
    }
    return mediaMs + this.#offsetMs;
  }
}
