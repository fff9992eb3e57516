import { Pace } from './pace.ts';
import { rescale, type Timebase } from './timebase.ts';

/** How a source counts time. */
export interface SourceClock {
  readonly timebase: Timebase;
  /** Width of its timestamps: they wrap at `2 ** bits`. */
  readonly bits: number;
}

/** A step further back than this, within one track, is a restart of the source's clock. */
const BACKWARD_SECONDS = 0.2;
/** A step further ahead than this, past every track and what has passed since, is a jump of the source's clock, not a pause. */
const FORWARD_SECONDS = 10;
/** Packets stamped before a jump of the clock come after it by less than this. */
const LEFTOVER_SECONDS = 1;
/** A timestamp that comes by so much earlier than any before, and by some usual steps, may be a mistake. */
const DOUBTED_SECONDS = 1;
const DOUBTED_STEPS = 3;
/** A source that sends so many timestamps in a row of which none goes on from another does not count. */
const MAX_DOUBTED = 4;
/** Taken for the distance of two packets until it is seen. */
const USUAL_STEP_SECONDS = 0.02;
/** How far the count of audio samples may be from the source's clock before it is set anew. */
const AUDIO_TOLERANCE_SECONDS = 0.06;
/** A step by whole frames is a hole, and no wavering of the clock: how far it may be from that, of the duration of one. */
const WHOLE_FRAMES = 0.1;

/**
 * The time of one source with all its tracks: unwraps its timestamps and carries on through jumps and restarts
 * of its clock, with the tracks in step. Pauses stay pauses, as long as they really were. A jump is one when a second packet
 * goes on from it: until then its packet is where one was expected.
 * Source times are in ticks of its clock and may be fractions.
 */
export class Timeline {
  readonly #clock: SourceClock;
  readonly #zeroBased: boolean;
  readonly #backward: number;
  readonly #forward: number;
  readonly #leftover: number;
  readonly #now: (() => number) | null;
  /** Offset added to source times now and before the last jump, and the number of its changes. */
  #offset = 0;
  #previousOffset = 0;
  #epoch = 0;
  #started = false;
  /** Latest time given out, when that was, and latest source time, of any track. */
  #latest = 0;
  #latestAt = 0;
  #latestSource = 0;
  readonly #pace = new Pace();
  #doubted: Doubted | undefined;

  /**
   * @param zeroBased the first timestamp becomes 0; else the source's own times are kept
   * @param now when a packet came, in milliseconds of the monotonic clock: the same for all frames of one packet; null for a file,
   * all of whose timestamps are believed
   */
  constructor(clock: SourceClock, zeroBased: boolean, now: (() => number) | null = () => performance.now()) {
    this.#now = now;
    this.#clock = clock;
    this.#zeroBased = zeroBased;
    this.#backward = this.#ticks(BACKWARD_SECONDS);
    this.#forward = this.#ticks(FORWARD_SECONDS);
    this.#leftover = this.#ticks(LEFTOVER_SECONDS);
  }

  /** Begins at a source time; without it, the first packet begins. Later calls change nothing. */
  start(source: number): void {
    if (this.#started) return;
    this.#started = true;
    this.#offset = this.#zeroBased ? -source : 0;
    this.#previousOffset = this.#offset;
    this.#latestSource = source;
    this.#latest = source + this.#offset;
    this.#latestAt = this.#arrival;
  }

  /** A track of the source, whose times come out in ticks of `timebase`. */
  track(timebase: Timebase): TrackTimeline {
    const step = this.#ticks(USUAL_STEP_SECONDS);
    const place: Place = { source: undefined, time: 0, surpassed: -Infinity, step, latestStep: 0, offset: 0, epoch: 0 };
    return new TrackTimeline(this.#clock.timebase, timebase, (source) => this.#place(place, source));
  }

  /** The continuous time of one timestamp of a track, in source ticks. */
  #place(place: Place, stamp: number): number {
    this.start(stamp);
    const source = this.#unwrap(stamp, place.source ?? this.#latestSource);
    const arrival = this.#arrival;
    let isBelieved = true;
    if (place.source === undefined) {
      place.offset = this.#offset;
      place.epoch = this.#epoch;
      // A track that starts on a clock of its own is put beside the others.
      if (Math.abs(source + place.offset - this.#latest) > this.#forward) place.offset = this.#latest - source;
    } else {
      isBelieved = this.#followJump(place, source, arrival);
    }
    const time = isBelieved ? source + place.offset : this.#expected(place, arrival);
    const step = time - place.time;
    if (place.source === undefined || step > 0) {
      if (place.source !== undefined) {
        if (step < this.#leftover || this.#isRepeated(place, step)) place.step = step;
        place.latestStep = step;
        place.surpassed = place.time;
      }
      place.time = time;
    }
    if (time > this.#latest) {
      this.#latest = time;
      this.#latestAt = arrival;
    }
    if (!isBelieved) return time;
    if (this.#doubted?.place === place) this.#doubted = undefined;
    this.#pace.note(this.#seconds(time), this.#seconds(arrival));
    place.source = source;
    this.#latestSource = source;
    return time;
  }

  /**
   * Finds out whether the clock jumped, here or in another track before, and takes the fitting offset.
   * @returns false for a timestamp that is not believed yet
   */
  #followJump(place: Place, source: number, arrival: number): boolean {
    const expected = this.#expected(place, arrival);
    // behind one that was a little early the others are where they were
    const early = place.time - place.surpassed;
    const reached = early > this.#backward && early <= this.#leftover ? place.surpassed : place.time;
    const behind = reached - this.#backward;
    const distance = (offset: number) => (source + offset < behind ? Infinity : Math.abs(source + offset - expected));
    if (place.epoch === this.#epoch && distance(place.offset) <= this.#leftover) return true;
    // Around a jump packets of both clocks mix: whichever clock continues the track is right.
    for (const offset of [this.#offset, this.#previousOffset]) {
      const near = Math.min(this.#leftover, distance(place.offset));
      if (offset !== place.offset && distance(offset) <= near) this.#setOffset(place, offset);
    }
    if (place.epoch !== this.#epoch && distance(place.offset) > this.#leftover) this.#setOffset(place, this.#offset);
    const time = source + place.offset;
    const reach = Math.max(this.#latest, this.#doubted?.place === place ? this.#doubted.time : -Infinity);
    const passed = arrival - this.#latestAt;
    const isPossible = time >= behind && time <= reach + passed + this.#forward;
    let isJump = !isPossible;
    if (!isPossible || this.#isEarly(place, time, arrival)) {
      const doubted = this.#doubted;
      if (this.#isDoubtful(place, source, isPossible ? time : -Infinity, arrival)) return false;
      isJump ||= doubted !== undefined && this.#isInTime(doubted, source, arrival);
    }
    if (isJump) this.#setOffset(place, Math.max(this.#latest, expected) - source);
    return true;
  }

  /** Where a packet is of which nothing else is known: a usual step on, and where that is long no further than has passed. */
  #expected(place: Place, arrival: number): number {
    const next = place.time + place.step;
    if (this.#now === null || place.step < this.#leftover) return next;
    return Math.min(next, Math.max(place.time, this.#latest + arrival - this.#latestAt));
  }

  /** Whether a source goes on from an early timestamp as fast as it is played: its clock was set, and nothing is missing. */
  #isInTime(doubted: Doubted, source: number, arrival: number): boolean {
    return this.#pace.isInTime(this.#seconds(source - doubted.source), this.#seconds(arrival - doubted.arrival));
  }

  #isEarly(place: Place, time: number, arrival: number): boolean {
    if (this.#now === null || time <= this.#latest) return false;
    const by = Math.max(DOUBTED_SECONDS, DOUBTED_STEPS * this.#seconds(place.step));
    return this.#pace.isEarly(this.#seconds(time), this.#seconds(arrival), by);
  }

  /** A pause is one step; what follows steps by as much is how fast the track is. */
  #isRepeated(place: Place, step: number): boolean {
    return Math.abs(step - place.latestStep) < this.#leftover;
  }

  /** Takes note of a timestamp that is far off; what comes at once with it is as wrong. Behind a stray one time goes back. */
  #isDoubtful(place: Place, source: number, time: number, arrival: number): boolean {
    if (this.#now === null) return false;
    const doubted = this.#doubted;
    if (doubted !== undefined && (arrival > doubted.arrival || doubted.place !== place)) {
      const step = source - doubted.source;
      const furthest = Math.max(this.#forward, arrival - doubted.arrival + this.#leftover);
      const goesOn = step >= -this.#leftover && step <= furthest;
      if (goesOn || doubted.count >= MAX_DOUBTED) return false;
    }
    const isOfSame = doubted?.place === place && doubted.arrival === arrival;
    this.#doubted = { place, source, time, arrival, count: (doubted?.count ?? 0) + (isOfSame ? 0 : 1) };
    return true;
  }

  #setOffset(place: Place, offset: number): void {
    if (offset !== this.#offset) {
      this.#previousOffset = this.#offset;
      this.#offset = offset;
      this.#epoch++;
    }
    place.offset = offset;
    place.epoch = this.#epoch;
  }

  /** When the packet came that is placed now, in ticks of the source. */
  get #arrival(): number {
    return this.#now === null ? 0 : this.#ticks(this.#now() / 1000);
  }

  #ticks(seconds: number): number {
    return (seconds * this.#clock.timebase.den) / this.#clock.timebase.num;
  }

  #seconds(ticks: number): number {
    return (ticks * this.#clock.timebase.num) / this.#clock.timebase.den;
  }

  #unwrap(stamp: number, near: number): number {
    const range = 2 ** this.#clock.bits;
    return stamp + Math.round((near - stamp) / range) * range;
  }
}

/** Where a track is. */
interface Place {
  /** Its last source time. */
  source: number | undefined;
  /** Its furthest time, the one before that, and the usual distance of two packets. */
  time: number;
  surpassed: number;
  step: number;
  /** How far its furthest time is from the one before, be it a pause. */
  latestStep: number;
  offset: number;
  epoch: number;
}

/** A timestamp that is far off, and that none has gone on from. Times are in ticks of the source. */
interface Doubted {
  readonly place: Place;
  readonly source: number;
  /** Time of the packet if it is right; -Infinity if it cannot be of the same clock. */
  readonly time: number;
  readonly arrival: number;
  /** How many there have been in a row. */
  readonly count: number;
}

/** One track's timestamps: never negative, each later than the one before. */
export class TrackTimeline {
  readonly #source: Timebase;
  readonly #place: (source: number) => number;
  #timebase: Timebase;
  #last = -1;
  /** Where the next audio frame begins if none is missing. */
  #expected: number | undefined;

  constructor(source: Timebase, timebase: Timebase, place: (source: number) => number) {
    this.#source = source;
    this.#timebase = timebase;
    this.#place = place;
  }

  /** Goes on in another timebase, for a track whose sampling rate changed. */
  setTimebase(timebase: Timebase): void {
    if (timebase.num === this.#timebase.num && timebase.den === this.#timebase.den) return;
    this.#last = this.#last < 0 ? -1 : rescale(this.#last, this.#timebase, timebase);
    this.#timebase = timebase;
    this.#expected = undefined;
  }

  /** The decoding time for a source's timestamp. */
  next(source: number): number {
    const time = Math.round(rescale(this.#place(source), this.#source, this.#timebase));
    this.#last = Math.max(time, this.#last + 1);
    return this.#last;
  }

  /**
   * The time of an audio frame. Frames follow each other exactly, sample by sample, but for whole ones that are
   * missing, as long as the source's coarser clock agrees within a tolerance; beyond it the clock rules.
   * @param duration of this frame, in ticks of the track
   */
  nextFrame(source: number, duration: number): number {
    const time = Math.max(0, Math.round(rescale(this.#place(source), this.#source, this.#timebase)));
    const tolerance = (AUDIO_TOLERANCE_SECONDS * this.#timebase.den) / this.#timebase.num;
    const expected = this.#expected ?? time;
    const agrees = Math.abs(time - expected) <= tolerance;
    this.#last = Math.max(agrees ? expected + missing(time - expected, duration) : time, this.#last + 1);
    this.#expected = this.#last + duration;
    return this.#last;
  }
}

/** Duration of the audio that is missing at a step ahead: whole frames, or 0. */
function missing(step: number, duration: number): number {
  const frames = Math.round(step / duration);
  return frames > 0 && Math.abs(step - frames * duration) <= duration * WHOLE_FRAMES ? frames * duration : 0;
}
