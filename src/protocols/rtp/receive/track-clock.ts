import { Pace } from '../../../core/pace.ts';
import { Lateness, type Drift } from './drift.ts';
import type { SenderTime } from './rtcp.ts';

/** Counts of a source step back by less, where pictures are sent before they are shown. */
const BACKWARD_SECONDS = 2;
/** By so much counts are in disorder that are in no other order than they are shown in. */
const DISORDER_SECONDS = 0.2;
/** A step further ahead than so much more than what has passed is a jump. */
const FORWARD_SECONDS = 10;
/** A timestamp that comes by so much earlier than any before, and by some usual steps, may be a mistake. */
const DOUBTED_SECONDS = 1.5;
const DOUBTED_STEPS = 3;
/** Who sends so many timestamps in a row of which none goes on from another does not count. */
const MAX_DOUBTED = 4;
/** A step by less is how fast a track is; a longer one may be a pause, unless the one before was as long. */
const USUAL_STEP_SECONDS = 1;
/** Some senders do not count while they have nothing to send, as browsers do whose sound is muted: shorter pauses are jitter. */
const PAUSE_SECONDS = 0.3;
/** Who stood still, and did count, sends what it missed at once: so long behind a report it is known which of them it was. */
const CATCH_UP_MS = 200;
/** A report tells of a time that is no further from that of the packets. */
const REPORT_SECONDS = 10;
/** A report is off by less than this, and clocks drift by less than so much of the time since the one before. */
const REPORT_ERROR_SECONDS = 0.1;
const MAX_DRIFT = 0.05;

/** A timestamp that is far off, and when its packet came, in milliseconds of the monotonic clock. */
interface Doubted {
  readonly timestamp: number;
  /** It cannot go on from what was before. */
  readonly isJump: boolean;
  readonly at: number;
  /** How many there have been in a row. */
  readonly count: number;
}

/** How one track counts, and what its sender tells of that. Times are in seconds. */
export class TrackClock {
  readonly leads: boolean;
  /** The time of its latest timestamp, without wraps. */
  seconds = 0;
  /** From its own time to that of the clock; undefined until it begins. */
  offset: number | undefined;
  readonly lateness = new Lateness();
  /** How it comes apart from the track that leads; undefined where reports tell, or it is the one. */
  drift: Drift | undefined;
  readonly #clockRate: number;
  #ticks: number | undefined;
  /** The furthest that it has come, and how far it had come before: what is sent early is shown behind that. */
  #furthest = -Infinity;
  #surpassed = -Infinity;
  #at = 0;
  /** The usual distance of two timestamps, in seconds, undefined until there are two; and that of the two furthest. */
  #step: number | undefined;
  #latestStep = 0;
  readonly #pace = new Pace();
  /** The latest timestamp, if it is far off and none has gone on from it. */
  #doubted: Doubted | undefined;
  /** From its own time to that of the sender's clock, as is believed, and as the last report told. */
  #wall: number | undefined;
  #candidate: number | undefined;
  /** When both were told, on the sender's clock. */
  #wallAt = 0;
  #candidateAt = 0;
  /** By how much less it has counted than passed, where it stopped for a while, since the last report that was believed. */
  #paused = 0;
  /** When the candidate came, where it tells of just that. */
  #toldAt: number | undefined;
  /** Came before the first packet. */
  #early: SenderTime | undefined;

  constructor(clockRate: number, leads: boolean) {
    this.#clockRate = clockRate;
    this.leads = leads;
  }

  get wall(): number | undefined {
    return this.#wall;
  }

  get isReported(): boolean {
    return this.#wall !== undefined || this.#early !== undefined;
  }

  /** The last report told something else than those before. */
  get isUnsettled(): boolean {
    return this.#candidate !== undefined;
  }

  /**
   * Goes on to a timestamp. Answers how much time that is; after a jump it begins anew. A timestamp that is far off jumps only
   * if the next packet goes on from it: until then its own packet is where one was expected.
   */
  advance(timestamp: number, now: number): number {
    const before = this.seconds;
    if (this.#ticks === undefined) {
      this.#ticks = timestamp;
    } else {
      const ticks = this.#unwrap(timestamp, this.#ticks);
      const step = (ticks - this.#ticks) / this.#clockRate;
      const passed = (now - this.#at) / 1000;
      const stopped = passed - Math.max(0, step) > PAUSE_SECONDS;
      const isBack = step < -BACKWARD_SECONDS || ticks < this.#surpassed - DISORDER_SECONDS * this.#clockRate;
      const isPossible = !isBack && ticks - this.#reach(ticks) <= (passed + FORWARD_SECONDS) * this.#clockRate;
      const isFarOff = isBack || this.#isFarAhead(ticks, now);
      const isJump = !isPossible || (isFarOff && this.#goesOnInTime(timestamp, now));
      if (isFarOff && this.#isDoubtful(timestamp, !isPossible, now)) return this.#standIn(passed);
      if (isJump) this.#jump(ticks, now);
      else if (stopped || this.#paused > 0) this.#paused = Math.max(0, this.#paused + passed - step);
      this.#ticks = ticks;
      this.#doubted = undefined;
    }
    this.#at = now;
    if (this.#toldAt !== undefined && now - this.#toldAt >= CATCH_UP_MS) this.#judgePause();
    if (this.#ticks > this.#furthest) {
      if (Number.isFinite(this.#furthest)) this.#noteStep((this.#ticks - this.#furthest) / this.#clockRate);
      this.#surpassed = this.#furthest;
      this.#furthest = this.#ticks;
    }
    this.seconds = this.#ticks / this.#clockRate;
    this.#pace.note(this.seconds, now / 1000);
    const early = this.#early;
    this.#early = undefined;
    if (early !== undefined) this.report(early);
    return this.seconds - before;
  }

  /** @returns false when what it tells cannot be */
  report(report: SenderTime): boolean {
    if (report.ntpMs === undefined) return false;
    if (this.#ticks === undefined) {
      this.#early = report;
      return true;
    }
    const ticks = this.#unwrap(report.rtpTime, this.#ticks);
    if (Math.abs(ticks - this.#ticks) > REPORT_SECONDS * this.#clockRate) return false;
    const told = report.ntpMs / 1000 - ticks / this.#clockRate;
    if (this.#isOfPause(told)) {
      this.#candidate = told;
      this.#candidateAt = report.ntpMs / 1000;
      this.#toldAt ??= this.#at;
      return true;
    }
    this.#toldAt = undefined;
    const at = report.ntpMs / 1000;
    const agrees =
      this.#wall === undefined ||
      continues(told - this.#wall, at - this.#wallAt) ||
      (this.#candidate !== undefined && continues(told - this.#candidate, at - this.#candidateAt));
    this.#candidate = agrees ? undefined : told;
    this.#candidateAt = at;
    if (agrees) this.#believe(told, at);
    return true;
  }

  /** Another count begins, of which nothing is known. */
  restart(): void {
    this.#forget();
    this.#pace.restart();
  }

  /** Its count was set to a timestamp, and goes on as fast as before. */
  #jump(ticks: number, now: number): void {
    this.#forget();
    this.#pace.move(ticks / this.#clockRate, now / 1000);
  }

  #forget(): void {
    this.lateness.restart();
    this.drift = undefined;
    this.offset = undefined;
    this.#ticks = undefined;
    this.#furthest = -Infinity;
    this.#surpassed = -Infinity;
    this.#wall = undefined;
    this.#candidate = undefined;
    this.#early = undefined;
    this.#paused = 0;
    this.#toldAt = undefined;
    this.#step = undefined;
    this.#latestStep = 0;
    this.#doubted = undefined;
  }

  #noteStep(step: number): void {
    const isUsual = step < USUAL_STEP_SECONDS || Math.abs(step - this.#latestStep) < USUAL_STEP_SECONDS;
    if (isUsual || this.#step === undefined) this.#step = step;
    this.#latestStep = step;
  }

  /** Whether it goes on from an early timestamp as fast as it is played: its count was set, and nothing is missing. */
  #goesOnInTime(timestamp: number, now: number): boolean {
    const doubted = this.#doubted;
    if (doubted === undefined) return false;
    const step = ((timestamp - doubted.timestamp) | 0) / this.#clockRate;
    return this.#pace.isInTime(step, (now - doubted.at) / 1000);
  }

  #isFarAhead(ticks: number, now: number): boolean {
    const by = Math.max(DOUBTED_SECONDS, DOUBTED_STEPS * (this.#step ?? 0));
    return this.#pace.isEarly(ticks / this.#clockRate, now / 1000, by);
  }

  /** Where it was last, be that doubted, in ticks. */
  #reach(ticks: number): number {
    const latest = this.#ticks as number;
    const doubted = this.#doubted;
    return doubted === undefined || doubted.isJump ? latest : Math.max(latest, this.#unwrap(doubted.timestamp, ticks));
  }

  /**
   * Takes note of a timestamp that is far off. What comes of one packet is as wrong as its first timestamp; behind a stray one
   * time goes back.
   */
  #isDoubtful(timestamp: number, isJump: boolean, now: number): boolean {
    const doubted = this.#doubted;
    if (doubted !== undefined) {
      const step = ((timestamp - doubted.timestamp) | 0) / this.#clockRate;
      const passed = (now - doubted.at) / 1000;
      const goesOn = step > -BACKWARD_SECONDS && step < Math.max(FORWARD_SECONDS, passed + DOUBTED_SECONDS);
      if (passed > 0 && (doubted.count >= MAX_DOUBTED || goesOn)) return false;
    }
    const count = doubted?.at === now ? doubted.count : (doubted?.count ?? 0) + 1;
    this.#doubted = { timestamp, isJump, at: now, count };
    return true;
  }

  /** @param passed since the latest timestamp that is believed */
  #standIn(passed: number): number {
    const before = this.seconds;
    const furthest = this.#furthest / this.#clockRate;
    this.seconds = this.#step === undefined ? furthest + passed : Math.max(before, furthest) + this.#step;
    return this.seconds - before;
  }

  #isOfPause(told: number): boolean {
    const moved = told - (this.#wall ?? told);
    return this.#paused > PAUSE_SECONDS && this.offset !== undefined && Math.abs(moved - this.#paused) <= PAUSE_SECONDS;
  }

  /** Moves it by a pause that the last report told of, unless it has caught up since. */
  #judgePause(): void {
    const told = this.#candidate as number;
    this.#toldAt = undefined;
    if (!this.#isOfPause(told)) return;
    this.offset = (this.offset as number) + told - (this.#wall ?? told);
    this.#candidate = undefined;
    this.#believe(told, this.#candidateAt);
  }

  #believe(told: number, at: number): void {
    this.#wall = told;
    this.#wallAt = at;
    this.#paused = 0;
  }

  #unwrap(timestamp: number, near: number): number {
    const range = 2 ** 32;
    return timestamp + Math.round((near - timestamp) / range) * range;
  }
}

/** Whether a report may be of the same clock as one before it that told another offset. */
function continues(moved: number, elapsed: number): boolean {
  return Math.abs(moved) <= REPORT_ERROR_SECONDS + MAX_DRIFT * Math.max(0, elapsed);
}
