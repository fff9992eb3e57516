import { fittingTarget, MIN_PART_SHARE, wholeFrames } from './part-target.ts';
import type { TrackFormat } from './track-format.ts';

export interface PartLimits {
  /** Configured seconds of a part. */
  readonly chunkDuration: number;
  /** Seconds of video parts: audio parts should end with them. */
  readonly videoTarget: () => number;
}

/** The growing part; times in ticks. */
export interface GrowingPart {
  readonly frames: number;
  /** Decode time of the first frame. */
  readonly start: number;
  /** Predicted end of the newest frame. */
  readonly end: number;
}

/** Divisor: a part may exceed the target by 1/SLACK of a frame. */
const SLACK = 8;
/** Share of a frame for the last frame of an encoded part: frames kept from a faster source are unevenly spaced. */
const UNEVEN = 0.6;
/** Share of a part by which it may start before a grid line and still end at the line after that. */
const GRID_TOLERANCE = 0.25;
/** Seconds before the grid at which a part may begin. */
const EPSILON_SECONDS = 0.001;

/** Decides how long the parts of a track last: as configured, to the nearest whole frame. */
export class PartFit {
  readonly #limits: PartLimits;
  readonly #format: TrackFormat;
  /** Fixed with the first part. */
  #partTarget = 0;
  #longestPart = 0;

  constructor(limits: PartLimits, format: TrackFormat) {
    this.#limits = limits;
    this.#format = format;
  }

  /** Intended seconds of a part. */
  get target(): number {
    if (this.#format.isAudio) return this.#limits.videoTarget();
    return this.#partTarget || fittingTarget(this.#limits.chunkDuration, this.#format.frameSeconds);
  }

  /** Upper limit of a part's seconds (PART-TARGET). */
  get partTarget(): number {
    const { target } = this;
    const frame = this.#format.frameSeconds;
    const bound = this.#isGridded(target, frame) ? Math.floor(target / frame + 1 - 1e-6) * frame : target;
    return Math.max(bound, this.#longestPart);
  }

  /** Latest end of a part, in ticks. @param start in ticks */
  latestEnd(start: number): number {
    return start + this.target * this.#format.den;
  }

  /**
   * Whether a part may take one more frame.
   * @param dts decode time of the frame, in ticks
   * @param duration ticks that it is predicted to last
   * @param begin of the segment, in ticks
   */
  fits({ frames, start }: GrowingPart, dts: number, duration: number, begin: number): boolean {
    const { target: seconds } = this;
    const target = seconds * this.#format.den;
    const frame = this.#format.frameSeconds;
    if (!this.#isGridded(seconds, frame)) {
      const most = wholeFrames(seconds, frame);
      const spare = frames === most - 1 && !this.#format.track.bypass ? UNEVEN : 1 / SLACK;
      return frames < most && dts + duration - start <= target + duration * spare;
    }
    const end = begin + (Math.floor((start - begin) / target + GRID_TOLERANCE) + 1) * target;
    return (
      dts < end - EPSILON_SECONDS * this.#format.den &&
      dts + duration - start <= this.partTarget * this.#format.den + 0.5
    );
  }

  /** Corrects the end of a part, in ticks: jitter of timestamps must not make it slightly longer than the target. */
  endOf({ start }: GrowingPart, end: number): number {
    const { target } = this;
    const most = start + Math.floor(target * this.#format.den + 1e-6);
    const epsilon = this.#format.durations.estimate / SLACK;
    return !this.#isGridded(target, this.#format.frameSeconds) && end > most && end <= most + epsilon ? most : end;
  }

  /**
   * Records the duration of a finished part, in seconds. Players learn PART-TARGET with the first one and keep it (RFC
   * 8216bis 4.4.3.7): later parts raise it by at most a share of a frame, never by a frame as long as several parts.
   */
  note(duration: number): void {
    const { target } = this;
    const most = target + UNEVEN * Math.min(target, this.#format.frameSeconds);
    if (this.#partTarget === 0 || duration <= most) this.#longestPart = Math.max(this.#longestPart, duration);
    this.#partTarget ||= target;
  }

  /**
   * Whether parts end on a grid of equal lengths from the segment's start, so that audio parts end with those of video.
   * Where audio frames are too long for that, as for video, parts hold as many whole frames as fit.
   */
  #isGridded(target: number, frame: number): boolean {
    return this.#format.isAudio && frame < target * (1 - MIN_PART_SHARE) * 0.5;
  }
}
