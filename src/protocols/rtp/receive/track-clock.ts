import { Pace } from '../../../core/pace.ts';
import { Lateness, type Drift } from './drift.ts';
import type { SenderTime } from './rtcp.ts';

/** Largest backward step of a source that sends frames before their presentation. */
const BACKWARD_SECONDS = 2;
/** Largest disorder of timestamps that are otherwise in presentation order. */
const DISORDER_SECONDS = 0.2;
/** A step that exceeds the elapsed time by more than this is a jump. */
const FORWARD_SECONDS = 10;
/** A timestamp that is early by more than this, and by some usual steps, may be a mistake. */
const DOUBTED_SECONDS = 1.5;
const DOUBTED_STEPS = 3;
/** A sender of so many timestamps in a row that do not continue each other has no usable count. */
const MAX_DOUBTED = 4;
/** Shorter steps show the rate of a track; a longer one may be a pause, unless the one before was as long. */
const USUAL_STEP_SECONDS = 1;
/** Shorter pauses are jitter. Some senders stop counting during longer ones, as browsers do with muted audio. */
const PAUSE_SECONDS = 0.3;
/** Time after a report in which a burst shows that the sender's clock ran on: such a sender sends at once what is missing. */
const CATCH_UP_MS = 200;
/** Largest distance between the time of a report and that of the packets. */
const REPORT_SECONDS = 10;
/** Error of one report, and drift as a share of the time between two. */
const REPORT_ERROR_SECONDS = 0.1;
const MAX_DRIFT = 0.05;

/** A timestamp that is far off. */
interface Doubted {
  readonly timestamp: number;
  /** Whether it cannot continue the timestamps before it. */
  readonly isJump: boolean;
  readonly at: number;
  /** Number of such timestamps in a row. */
  readonly count: number;
}

/** Timestamps and sender reports of one track. Times are in seconds. */
export class TrackClock {
  readonly leads: boolean;
  /** Time of the latest timestamp, without wraps. */
  seconds = 0;
  /** Difference from the track's own time to the source's clock; undefined until the track begins. */
  offset: number | undefined;
  readonly lateness = new Lateness();
  /** Drift from the leading track; undefined where reports exist, and for the leading track itself. */
  drift: Drift | undefined;
  readonly #clockRate: number;
  #ticks: number | undefined;
  /** The highest timestamp, and the highest before it: frames that are sent early are presented after that one. */
  #furthest = -Infinity;
  #surpassed = -Infinity;
  #at = 0;
  /** Usual distance of two timestamps in seconds, undefined until there are two; and the distance of the two highest. */
  #step: number | undefined;
  #latestStep = 0;
  readonly #pace = new Pace();
  /** The latest timestamp, if it is far off and none has continued it. */
  #doubted: Doubted | undefined;
  /** Difference from the track's own time to the sender's clock: the accepted one, and that of the last report, if it differs. */
  #wall: number | undefined;
  #candidate: number | undefined;
  /** Times of both reports, on the sender's clock. */
  #wallAt = 0;
  #candidateAt = 0;
  /** Time that the sender did not count in pauses, since the last accepted report. */
  #paused = 0;
  /** Arrival of the candidate, where it matches such a pause. */
  #reportedAt: number | undefined;
  /** Report that came before the first packet. */
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

  /** The last report disagrees with those before. */
  get isUnsettled(): boolean {
    return this.#candidate !== undefined;
  }

  /**
   * Advances to a timestamp. A jump makes the track begin anew. A timestamp that is far off jumps only if the next packet
   * continues it: until then its own packet gets the expected time.
   * @returns seconds from the previous timestamp
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
    if (this.#reportedAt !== undefined && now - this.#reportedAt >= CATCH_UP_MS) this.#judgePause();
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

  /** @returns false when the report is implausible */
  report(report: SenderTime): boolean {
    if (report.ntpMs === undefined) return false;
    if (this.#ticks === undefined) {
      this.#early = report;
      return true;
    }
    const ticks = this.#unwrap(report.rtpTime, this.#ticks);
    if (Math.abs(ticks - this.#ticks) > REPORT_SECONDS * this.#clockRate) return false;
    const reported = report.ntpMs / 1000 - ticks / this.#clockRate;
    if (this.#isOfPause(reported)) {
      this.#candidate = reported;
      this.#candidateAt = report.ntpMs / 1000;
      this.#reportedAt ??= this.#at;
      return true;
    }
    this.#reportedAt = undefined;
    const at = report.ntpMs / 1000;
    const agrees =
      this.#wall === undefined ||
      continues(reported - this.#wall, at - this.#wallAt) ||
      (this.#candidate !== undefined && continues(reported - this.#candidate, at - this.#candidateAt));
    this.#candidate = agrees ? undefined : reported;
    this.#candidateAt = at;
    if (agrees) this.#believe(reported, at);
    return true;
  }

  /** Begins another count, unrelated to the last. */
  restart(): void {
    this.#forget();
    this.#pace.restart();
  }

  /** The sender set its count to a timestamp, and goes on at the same rate. */
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
    this.#reportedAt = undefined;
    this.#step = undefined;
    this.#latestStep = 0;
    this.#doubted = undefined;
  }

  #noteStep(step: number): void {
    const isUsual = step < USUAL_STEP_SECONDS || Math.abs(step - this.#latestStep) < USUAL_STEP_SECONDS;
    if (isUsual || this.#step === undefined) this.#step = step;
    this.#latestStep = step;
  }

  /** Whether it continues a doubted timestamp in real time: the sender set its count, and nothing is missing. */
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

  /** The highest timestamp so far, a doubted one included, in ticks. */
  #reach(ticks: number): number {
    const latest = this.#ticks as number;
    const doubted = this.#doubted;
    return doubted === undefined || doubted.isJump ? latest : Math.max(latest, this.#unwrap(doubted.timestamp, ticks));
  }

  /**
   * Records a timestamp that is far off. Timestamps of the same packet are as wrong as its first one; after a stray one time goes
   * back.
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

  /** @param passed seconds since the latest accepted timestamp */
  #standIn(passed: number): number {
    const before = this.seconds;
    const furthest = this.#furthest / this.#clockRate;
    this.seconds = this.#step === undefined ? furthest + passed : Math.max(before, furthest) + this.#step;
    return this.seconds - before;
  }

  #isOfPause(reported: number): boolean {
    const moved = reported - (this.#wall ?? reported);
    return this.#paused > PAUSE_SECONDS && this.offset !== undefined && Math.abs(moved - this.#paused) <= PAUSE_SECONDS;
  }

  /** Moves the track by a pause that the last report confirmed, unless it has caught up since. */
  #judgePause(): void {
    const reported = this.#candidate as number;
    this.#reportedAt = undefined;
    if (!this.#isOfPause(reported)) return;
    this.offset = (this.offset as number) + reported - (this.#wall ?? reported);
    this.#candidate = undefined;
    this.#believe(reported, this.#candidateAt);
  }

  #believe(reported: number, at: number): void {
    this.#wall = reported;
    this.#wallAt = at;
    this.#paused = 0;
  }

  #unwrap(timestamp: number, near: number): number {
    const range = 2 ** 32;
    return timestamp + Math.round((near - timestamp) / range) * range;
  }
}

/** Whether a report may be of the same clock as an earlier one with another offset. */
function continues(moved: number, elapsed: number): boolean {
  return Math.abs(moved) <= REPORT_ERROR_SECONDS + MAX_DRIFT * Math.max(0, elapsed);
}
