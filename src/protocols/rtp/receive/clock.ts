import type { SourceClock } from '../../../core/timeline.ts';
import type { SenderTime } from './rtcp.ts';
import { Drift } from './drift.ts';
import { TrackClock } from './track-clock.ts';

/** Timebase of `RtpClock`: 90 kHz, with fractions, without wraps. */
export const RTP_CLOCK: SourceClock = Object.freeze({ timebase: Object.freeze({ num: 1, den: 90_000 }), bits: 62 });

/** Largest skew of the tracks of a source: more comes from wrong reports, or from a track that stopped counting for a while. */
const MAX_SKEW_SECONDS = 5;
/** Largest skew without reports: packaging allows 4 s between tracks (`src/packaging/track-lag.ts`). */
const MAX_UNREPORTED_SKEW_SECONDS = 3.5;
/** Tracks without a packet for this time have stopped. */
const RECENT_MS = 1000;
/** Largest correction by reports, as a share of the elapsed time. */
const MAX_SLEW = 0.05;
/** Accuracy of reports. */
const LEAST_ERROR_SECONDS = 0.005;
/** Span in which the lateness of tracks without reports is compared. */
const SPAN_MS = 5000;

/**
 * One clock for all tracks of a source, whose timestamps have different origins.
 *
 * It begins with 0, or with the RTP time of the first track. A track begins at the arrival time of its first packet.
 * Sender reports give the true relation of tracks: a track that begins is aligned at once, a running one so slowly that no
 * viewer notices. Audio keeps its times, and video is moved. A report that is far off, or that jumps, has no effect before the
 * next agrees. Tracks of which not all are reported stay aligned by arrival, and are moved in the same way where their arrival
 * drifts apart for long. A track that stopped counting during a pause is moved by as much as its report shows. Counts that
 * jump or are left far behind, and new sources, begin as a track does.
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
   * @param usesReports false: tracks are aligned by arrival
   * @param keepsTimes begins with the RTP time of the first track, which keeps its own times as long as they are continuous
   * @param onDrift called once for each track without reports, with the share of time by which the clock of the leading track is
   *   slower than its own
   */
  constructor(usesReports: boolean, keepsTimes = false, onDrift: (share: number) => void = () => {}) {
    this.#usesReports = usesReports;
    this.#onDrift = onDrift;
    this.#keepsTimes = keepsTimes;
  }

  /** @param leads whether the other tracks are moved to this one */
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

  /** Whether reports relate the track to some other. */
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

  /** Finds the tracks without reports that have drifted away from the leading one. */
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

  /** Selects the running track with reports to which the others are moved. */
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

/** Moves a track by a part of an error that no viewer notices. @returns seconds that it was moved by */
function move(track: TrackClock, error: number, passed: number): number {
  if (Math.abs(error) < LEAST_ERROR_SECONDS || Math.abs(error) > MAX_SKEW_SECONDS) return 0;
  const most = passed * MAX_SLEW;
  const moved = Math.max(-most, Math.min(most, error));
  track.offset = (track.offset as number) + moved;
  return moved;
}

/** Seconds by which a track is too early, by the reports of both. */
function errorOf(track: TrackClock, reference: TrackClock | undefined): number {
  if (track.wall === undefined || reference?.wall === undefined) return 0;
  return track.wall - reference.wall + (reference.offset as number) - (track.offset as number);
}

export interface RtpTrackClock {
  /** The sender has reported the time of its timestamps. */
  readonly isReported: boolean;
  /**
   * The time of an RTP timestamp, in ticks of `RTP_CLOCK`.
   * @param now when its packet came, in milliseconds of a monotonic clock
   */
  time(timestamp: number, now: number): number;
  /** @returns false when the report is implausible */
  report(report: SenderTime): boolean;
  /** Timestamps to come are unrelated to those before. */
  restart(): void;
}
