import { toSeconds, type Timebase } from '../../core/timebase.ts';

/** A difference between media time and wall clock beyond this is a jump of the source, not jitter. */
const JUMP_MS = 2000;
/** Lead of all times over the arrival of the first packet: sources send in bursts, and the first packet may be late in one. */
const LEAD_MS = 1000;

/**
 * Gives every instant of a stream one wall-clock time, the same for all its tracks, so that they can be aligned. The time lies in
 * the past: mediasoup takes media dated after its arrival for captured on arrival, which would part it from other tracks. A late
 * track, such as that of an encoder that catches up, does not move it while others are on time.
 */
export class MediaClock {
  #offsetMs: number | undefined;
  /** When a packet was last on time. */
  #onTime = -Infinity;

  /** @param now milliseconds since the Unix epoch at which the packet is at hand */
  wallMs(time: number, timebase: Timebase, now: number): number {
    const mediaMs = toSeconds(time, timebase) * 1000;
    const late = now - mediaMs - (this.#offsetMs ?? Infinity);
    if (late < -JUMP_MS || (late > JUMP_MS && now - this.#onTime > JUMP_MS)) this.#offsetMs = now - mediaMs;
    const offset = this.#offsetMs as number;
    if (now - mediaMs - offset <= JUMP_MS) this.#onTime = now;
    return mediaMs + offset - LEAD_MS;
  }
}
