/** Tracks that came apart by less than this, in seconds, are left alone: packets are late by as much. */
const LEAST_SECONDS = 0.06;
/** Two clocks differ where tracks are further apart by as much, in seconds, after each of so many spans. */
const LEAST_GROWTH_SECONDS = 0.01;
const SPANS = 4;

/** How late packets of a track come, by its own count: those that were held up the least, in two spans of time that follow each other. */
export class Lateness {
  #least = Infinity;
  latest = Infinity;
  before = Infinity;

  /** @param seconds from the time of a packet to its arrival, on any clock */
  note(seconds: number): void {
    if (seconds < this.#least) this.#least = seconds;
  }

  /** Ends a span. */
  turn(): void {
    this.before = this.latest;
    this.latest = this.#least;
    this.#least = Infinity;
  }

  /** Starts over: later times are unrelated to earlier ones. */
  restart(): void {
    this.#least = Infinity;
    this.latest = Infinity;
    this.before = Infinity;
  }
}

/** A track as far as its drift goes. */
export interface Drifting {
  readonly lateness: Lateness;
  /** From its own time to that of the clock, in seconds; undefined until it begins. */
  readonly offset: number | undefined;
}

/** How a track comes apart from another one as they arrive, since both had brought something in a span. Times are in seconds. */
export class Drift {
  readonly leader: Drifting;
  /** By how much the track is to be moved to be beside the other as it was. */
  due = 0;
  readonly #track: Drifting;
  readonly #since: number;
  readonly #lateness: number;
  readonly #distance: number;
  #furthest = 0;
  #spans = 0;

  /** @param now in milliseconds of the monotonic clock */
  constructor(track: Drifting, leader: Drifting, now: number) {
    this.leader = leader;
    this.#track = track;
    this.#since = now;
    this.#distance = this.#apart;
    this.#lateness = track.lateness.latest - leader.lateness.latest - this.#distance;
  }

  /** Whether what it compares with is known. */
  get isFounded(): boolean {
    return Number.isFinite(this.#lateness);
  }

  /**
   * A span is over.
   * @param now in milliseconds of the monotonic clock
   * @returns by which share of the time the other one is slow, once, when that is certain
   */
  compare(now: number): number | undefined {
    const [{ lateness }, { lateness: other }] = [this.#track, this.leader];
    const expected = this.#lateness + this.#apart;
    const before = lateness.before - other.before - expected;
    const latest = lateness.latest - other.latest - expected;
    const least = Math.min(Math.abs(before), Math.abs(latest));
    // a span without packets of a track is no evidence
    const agree = Number.isFinite(before + latest) && before > 0 === latest > 0 && least >= LEAST_SECONDS;
    this.due = agree ? latest : 0;
    if (!agree) return undefined;
    const total = this.#apart - this.#distance + this.due;
    if (Math.abs(total) < Math.abs(this.#furthest) + LEAST_GROWTH_SECONDS) return undefined;
    this.#furthest = total;
    return ++this.#spans === SPANS ? (-total * 1000) / (now - this.#since) : undefined;
  }

  get #apart(): number {
    return (this.#track.offset ?? NaN) - (this.leader.offset ?? NaN);
  }
}
