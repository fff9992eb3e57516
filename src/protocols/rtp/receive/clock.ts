import type { SourceClock } from '../../../core/timeline.ts';
import type { SenderTime } from './rtcp.ts';
import { Drift } from './drift.ts';
import { TrackClock } from './track-clock.ts';

/** How `RtpClock` counts: 90 kHz, in fractions, without end. */
export const RTP_CLOCK: SourceClock = Object.freeze({ timebase: Object.freeze({ num: 1, den: 90_000 }), bits: 62 });

/** Tracks of one source are further apart only by reports that are wrong, or as one did not count for a while. */
const MAX_SKEW_SECONDS = 5;
/** The same where they are not reported: what is packaged may be no further apart than 4 s (`src/packaging/lag.ts`). */
const MAX_UNREPORTED_SKEW_SECONDS = 3.5;
/** Other tracks have not come to a halt. */
const RECENT_MS = 1000;
/** What reports tell is followed by no more than so much of the time that passes. */
const MAX_SLEW = 0.05;
/** Reports are no more exact than this. */
const LEAST_ERROR_SECONDS = 0.005;
/** How late tracks come, which nobody reports, is compared in spans of this. */
const SPAN_MS = 5000;

/**
 * One clock for all tracks of a source, each of which counts from a number of its own.
 *
 * It begins with 0, or with the RTP time of the first track. A track begins at the time that its first packet comes at.
 * Sender reports tell how tracks really are to each other: a track that begins is put there at once, one that runs is moved
 * there so slowly that nobody sees it. Sound stays where it is, and pictures are moved. A report that is far off, or that
 * jumps, moves nothing before the next agrees. Tracks that are not all reported are to each other as they come, and where their
 * arrival drifts apart for long, they are moved in the same way. A track that did not count while nothing of it came is moved by as much as its
 * report tells. Counts that jump or are left far behind, and new sources, begin as a track does.
 */
export class RtpClock {
  readonly #usesReports: boolean;
  readonly #keepsTimes: boolean;
  readonly #tracks: TrackClock[] = [];
  /** The latest time given out, in seconds, and when that was. */
  #latest = 0;
  #latestAt: number | undefined;
  #spanAt: number | undefined;
  readonly #onDrift: (share: number) => void;

  /**
   * @param usesReports false: tracks are to each other as they come
   * @param keepsTimes it begins with the RTP time of the track that comes first, which goes on in its own times as long as they go on
   * @param onDrift hears, once for each track, by which share of the time the clock of the track that leads is slower than that
   * of another, where no reports tell
   */
  constructor(usesReports: boolean, keepsTimes = false, onDrift: (share: number) => void = () => {}) {
    this.#usesReports = usesReports;
    this.#onDrift = onDrift;
    this.#keepsTimes = keepsTimes;
  }

  /** @param leads other tracks are moved, and not this one */
  track(clockRate: number, leads: boolean): RtpTrackClock {
    const track = new TrackClock(clockRate, leads);
    this.#tracks.push(track);
    return {
      time: (timestamp, now) => this.#time(track, timestamp, now),
      report: (report) => !this.#usesReports || track.report(report),
      restart: () => track.restart(),
      get isReported() {
        return track.isReported;
      },
    };
  }

  #time(track: TrackClock, timestamp: number, now: number): number {
    let passed = track.advance(timestamp, now);
    if (this.#isLeftBehind(track, now)) {
      track.restart();
      passed = track.advance(timestamp, now);
    }
    if (track.offset === undefined) this.#begin(track, now);
    else if (passed > 0) this.#slew(track, passed);
    track.lateness.note(now / 1000 - track.seconds);
    this.#spanAt ??= now;
    if (now - this.#spanAt >= SPAN_MS) this.#compare(now);
    const time = track.seconds + (track.offset as number);
    if (this.#latestAt === undefined || time > this.#latest) {
      this.#latest = time;
      this.#latestAt = now;
    }
    return time * RTP_CLOCK.timebase.den;
  }

  #isLeftBehind(track: TrackClock, now: number): boolean {
    const { offset, seconds } = track;
    const elapsed = now - (this.#latestAt ?? Infinity);
    if (offset === undefined || !(elapsed >= 0 && elapsed < RECENT_MS)) return false;
    const behind = this.#latest - (seconds + offset);
    return behind > (this.#isReported(track) ? MAX_SKEW_SECONDS : MAX_UNREPORTED_SKEW_SECONDS);
  }

  /** Whether it is told how the track is to some other. */
  #isReported(track: TrackClock): boolean {
    if (track.wall === undefined) return false;
    for (const other of this.#tracks) if (other !== track && other.wall !== undefined) return true;
    return false;
  }

  #begin(track: TrackClock, now: number): void {
    const reference = this.#reference();
    const begin = this.#keepsTimes ? track.seconds : 0;
    const arrived = this.#latestAt === undefined ? begin : this.#latest + (now - this.#latestAt) / 1000;
    track.offset = arrived - track.seconds;
    const error = errorOf(track, reference);
    if (Math.abs(error) <= MAX_SKEW_SECONDS) track.offset += error;
    for (const one of this.#tracks) one.drift = undefined;
  }

  #slew(track: TrackClock, passed: number): void {
    const { drift } = track;
    if (!this.#isReported(track)) {
      if (drift !== undefined) drift.due -= move(track, drift.due, passed);
      return;
    }
    const reference = this.#reference();
    if (reference !== track && !this.#isUnsettled) move(track, errorOf(track, reference), passed);
  }

  /** Finds out which tracks have drifted away from the one that leads, where nothing is reported of that. */
  #compare(now: number): void {
    this.#spanAt = now;
    for (const { lateness } of this.#tracks) lateness.turn();
    const running = this.#tracks.filter(({ offset }) => offset !== undefined);
    const leader = running.find(({ leads }) => leads) ?? running[0];
    if (leader !== undefined) for (const track of running) if (track !== leader) this.#compareWith(leader, track, now);
  }

  #compareWith(leader: TrackClock, track: TrackClock, now: number): void {
    if (this.#isReported(track)) {
      track.drift = undefined;
    } else if (track.drift?.leader !== leader || !track.drift.isFounded) {
      track.drift = new Drift(track, leader, now);
    } else {
      const share = track.drift.compare(now);
      if (share !== undefined) this.#onDrift(share);
    }
  }

  /** Which of the tracks that run and have reports the others are moved to. */
  #reference(): TrackClock | undefined {
    let found: TrackClock | undefined;
    for (const track of this.#tracks) {
      if (track.offset === undefined || track.wall === undefined) continue;
      if (track.leads) return track;
      found ??= track;
    }
    return found;
  }

  get #isUnsettled(): boolean {
    for (const { isUnsettled } of this.#tracks) if (isUnsettled) return true;
    return false;
  }
}

/** Moves a track by a part of an error that nobody sees. @returns by how much */
function move(track: TrackClock, error: number, passed: number): number {
  if (Math.abs(error) < LEAST_ERROR_SECONDS || Math.abs(error) > MAX_SKEW_SECONDS) return 0;
  const most = passed * MAX_SLEW;
  const moved = Math.max(-most, Math.min(most, error));
  track.offset = (track.offset as number) + moved;
  return moved;
}

/** By how much a track is too early, by the reports of both. */
function errorOf(track: TrackClock, reference: TrackClock | undefined): number {
  if (track.wall === undefined || reference?.wall === undefined) return 0;
  return track.wall - reference.wall + (reference.offset as number) - (track.offset as number);
}

/** One track of a clock. */
export interface RtpTrackClock {
  /** Its sender has told of which time its timestamps are. */
  readonly isReported: boolean;
  /**
   * The time of an RTP timestamp, in ticks of `RTP_CLOCK`.
   * @param now when its packet came, in milliseconds of a monotonic clock
   */
  time(timestamp: number, now: number): number;
  /** @returns false when what the report tells cannot be */
  report(report: SenderTime): boolean;
  /** Timestamps to come have nothing to do with those before. */
  restart(): void;
}
