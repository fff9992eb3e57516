/** Ticks of 90 kHz from a PCR to the decode times beside it: the time that decoders buffer. */
const LEAD = 18_000;
/** Longest interval of PCRs, 100 ms (ETSI TR 101 290, 2.3a). */
const MAX_GAP = 9000;
const INTERVAL = 8100;
/** Shortest interval: not every frame needs a PCR at high frame rates. */
const MIN_GAP = 3500;
/** Longest gap that is filled with PCRs. */
const MAX_FILLED = 180_000;
/** Lead of other streams over the one with the PCR after which they move the clock. */
const MAX_SKEW = 90_000;
/** Jumps of time, back and forth, from which on another timeline begins. */
const MAX_BACK = 90_000;
const MAX_FORTH = 900_000;

/** PCRs to write, in ticks of 90 kHz, not wrapped. */
export interface ClockStep {
  /** PCRs in packets of their own, before the unit. */
  readonly alone: readonly number[];
  /** PCR in the first packet of the unit. */
  readonly own: number | undefined;
  /** Whether the first of these begins another timeline. */
  readonly discontinuity: boolean;
}

const NONE: ClockStep = Object.freeze({ alone: Object.freeze([]), own: undefined, discontinuity: false });

/** Clock of a program: decode times of the stream that carries the PCR, less the time that decoders buffer. */
export class ProgramClock {
  #now: number | undefined;
  #lastPcr: number | undefined;
  /** Decode time of the first unit, if it belongs to another stream than that with the PCR. */
  #first: number | undefined;

  /** Latest decode time; undefined while there is none. */
  get now(): number | undefined {
    return this.#now;
  }

  /**
   * Advances to the decode time of a unit.
   * @param leads whether the unit belongs to the stream with the PCR
   * @param wanted whether it gets a PCR in any case, if it leads
   */
  advance(dts: number, leads: boolean, wanted: boolean): ClockStep {
    if (leads) return this.#lead(dts, wanted);
    if (this.#now === undefined) {
      this.#first ??= dts;
      if (dts - this.#first < MAX_SKEW) return NONE;
    }
    this.#now = Math.max(this.#now ?? -Infinity, dts - MAX_SKEW);
    const alone = this.#fill(this.#now);
    const last = alone.at(-1);
    if (last === undefined) return NONE;
    this.#lastPcr = last;
    return { alone: alone.map(programTime), own: undefined, discontinuity: false };
  }

  #lead(dts: number, wanted: boolean): ClockStep {
    const before = this.#now;
    const discontinuity = before !== undefined && (dts < before - MAX_BACK || dts > before + MAX_FORTH);
    const now = before === undefined || discontinuity ? dts : Math.max(before, dts);
    this.#now = now;
    if (discontinuity) this.#lastPcr = undefined;
    const lastPcr = this.#lastPcr;
    if (!wanted && lastPcr !== undefined && now - lastPcr < MIN_GAP) return NONE;
    const alone =
      now - (lastPcr ?? now) > MAX_GAP - INTERVAL + MIN_GAP
        ? this.#fill(now - (MAX_GAP - INTERVAL)).map(programTime)
        : NONE.alone;
    this.#lastPcr = now;
    return { alone, own: programTime(now), discontinuity };
  }

  /** Times of the missing PCRs up to a time. */
  #fill(until: number): number[] {
    const lastPcr = this.#lastPcr ?? until - INTERVAL;
    if (until - lastPcr > MAX_FILLED) return [until];
    const times: number[] = [];
    for (let time = lastPcr + INTERVAL; time <= until; time += INTERVAL) times.push(time);
    return times;
  }
}

function programTime(time: number): number {
  return time - LEAD;
}
