/** Ticks of 90 kHz from a PCR to the decode times beside it: the time that decoders buffer. */
const LEAD = 18_000;
/** PCRs are no further apart than 100 ms (ETSI TR 101 290, 2.3a). */
const MAX_GAP = 9000;
const INTERVAL = 8100;
/** Not every frame of a fast picture needs one. */
const MIN_GAP = 3500;
/** A longer silence is not filled up. */
const MAX_FILLED = 180_000;
/** So far others may be ahead of the stream with the PCR; when it is silent for longer they move the clock. */
const MAX_SKEW = 90_000;
/** Times that go back further, or forth, are another timeline. */
const MAX_BACK = 90_000;
const MAX_FORTH = 900_000;

/** Where PCRs stand, in ticks of 90 kHz without end. */
export interface ClockStep {
  /** In packets of their own, in front of what comes. */
  readonly alone: readonly number[];
  /** In the first packet of what comes. */
  readonly own: number | undefined;
  /** The first of these is of another timeline than those before. */
  readonly discontinuity: boolean;
}

const NONE: ClockStep = Object.freeze({ alone: Object.freeze([]), own: undefined, discontinuity: false });

/** The clock of a program: decode times of the stream that carries the PCR, less what decoders hold. */
export class ProgramClock {
  #now: number | undefined;
  /** Time of the last PCR. */
  #told: number | undefined;
  /** Of the first unit, where it is of another stream than the one with the PCR. */
  #first: number | undefined;

  /** The newest decode time; undefined while there is none. */
  get now(): number | undefined {
    return this.#now;
  }

  /**
   * Goes on to the decode time of what comes.
   * @param leads it is of the stream with the PCR
   * @param wanted it has a PCR in any case, if it leads
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
    this.#told = last;
    return { alone: alone.map(programTime), own: undefined, discontinuity: false };
  }

  #lead(dts: number, wanted: boolean): ClockStep {
    const before = this.#now;
    const discontinuity = before !== undefined && (dts < before - MAX_BACK || dts > before + MAX_FORTH);
    const now = before === undefined || discontinuity ? dts : Math.max(before, dts);
    this.#now = now;
    if (discontinuity) this.#told = undefined;
    const told = this.#told;
    if (!wanted && told !== undefined && now - told < MIN_GAP) return NONE;
    const alone =
      now - (told ?? now) > MAX_GAP - INTERVAL + MIN_GAP
        ? this.#fill(now - (MAX_GAP - INTERVAL)).map(programTime)
        : NONE.alone;
    this.#told = now;
    return { alone, own: programTime(now), discontinuity };
  }

  /** Times of the PCRs that are missing up to a time. */
  #fill(until: number): number[] {
    const told = this.#told ?? until - INTERVAL;
    if (until - told > MAX_FILLED) return [until];
    const times: number[] = [];
    for (let time = told + INTERVAL; time <= until; time += INTERVAL) times.push(time);
    return times;
  }
}

function programTime(time: number): number {
  return time - LEAD;
}
