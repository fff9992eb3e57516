import type { MediaTrack } from '../core/track.ts';
import type { FrameDuration } from './frame-duration.ts';
import { fittingTarget, MIN_PART_SHARE, wholeFrames } from './part-target.ts';

/** What parts are to last. */
export interface PartLimits {
  /** Seconds that parts are to last. */
  readonly chunkDuration: number;
  /** Seconds that parts of the picture last, which those of the sound are to come with. */
  readonly pictureTarget: () => number;
}

/** The part that grows; times in ticks. */
export interface GrowingPart {
  readonly frames: number;
  /** Decode time of the first frame. */
  readonly start: number;
  /** Where the newest frame is predicted to end. */
  readonly end: number;
}

/** Part of a frame by which a part may be longer than the target before it is made shorter by a frame. */
const SLACK = 8;
/** The same for the last frame of a part that was encoded: what is left of a faster source is not equally far apart. */
const UNEVEN = 0.6;
/** Share of a part by which its start may be behind the grid without its end moving on. */
const GRID_TOLERANCE = 0.25;
/** Parts on the grid may begin that much before it, in seconds. */
const HAIR_SECONDS = 0.001;

/** How long the parts of one track last: as configured, as near as whole frames can be. */
export class PartFit {
  readonly #limits: PartLimits;
  #track: MediaTrack;
  #durations: FrameDuration;
  /** Fixed with the first part. */
  #partTarget = 0;
  #longestPart = 0;

  constructor(limits: PartLimits, track: MediaTrack, durations: FrameDuration) {
    this.#limits = limits;
    this.#track = track;
    this.#durations = durations;
  }

  /** The track goes on with another configuration; what there is of parts stays. */
  reconfigure(track: MediaTrack, durations: FrameDuration): void {
    this.#track = track;
    this.#durations = durations;
  }

  /** Seconds that parts are made to last. */
  get target(): number {
    if (this.#track.type === 'audio') return this.#limits.pictureTarget();
    return this.#partTarget || fittingTarget(this.#limits.chunkDuration, this.#frameSeconds);
  }

  /** Seconds that no part is longer than (PART-TARGET). */
  get partTarget(): number {
    const { target } = this;
    const frame = this.#frameSeconds;
    const bound = this.#isGridded(target, frame) ? Math.floor(target / frame + 1 - 1e-6) * frame : target;
    return Math.max(bound, this.#longestPart);
  }

  /** The latest time that a part which starts at a time may end, in ticks. */
  latestEnd(start: number): number {
    return start + this.target * this.#den;
  }

  /**
   * Whether a part may take one more frame.
   * @param dts decode time of the frame, in ticks
   * @param duration ticks that it is predicted to last
   * @param begin of the segment, in ticks
   */
  fits({ frames, start }: GrowingPart, dts: number, duration: number, begin: number): boolean {
    const { target: seconds } = this;
    const target = seconds * this.#den;
    const frame = this.#frameSeconds;
    if (!this.#isGridded(seconds, frame)) {
      const most = wholeFrames(seconds, frame);
      const spare = frames === most - 1 && !this.#track.bypass ? UNEVEN : 1 / SLACK;
      return frames < most && dts + duration - start <= target + duration * spare;
    }
    const end = begin + (Math.floor((start - begin) / target + GRID_TOLERANCE) + 1) * target;
    return dts < end - HAIR_SECONDS * this.#den && dts + duration - start <= this.partTarget * this.#den + 0.5;
  }

  /** Where a part ends that is to end at a time, in ticks: the jitter of timestamps must not make it a hair longer than the target. */
  endOf({ start }: GrowingPart, end: number): number {
    const { target } = this;
    const most = start + Math.floor(target * this.#den + 1e-6);
    const hair = this.#durations.estimate / SLACK;
    return !this.#isGridded(target, this.#frameSeconds) && end > most && end <= most + hair ? most : end;
  }

  /**
   * Takes the duration of a part that was made, in seconds. Players learn PART-TARGET with the first one and keep to it (RFC
   * 8216bis 4.4.3.7): later ones add what whole frames take more, and not what a frame lasts that is as long as several parts.
   */
  note(duration: number): void {
    const { target } = this;
    const most = target + UNEVEN * Math.min(target, this.#frameSeconds);
    if (this.#partTarget === 0 || duration <= most) this.#longestPart = Math.max(this.#longestPart, duration);
    this.#partTarget ||= target;
  }

  /**
   * Sound is cut at the first frame behind where parts of equal length end, so that its parts come with those
   * of the picture; where its frames are too long for that, parts are as long as whole frames fit.
   */
  #isGridded(target: number, frame: number): boolean {
    return this.#track.type === 'audio' && frame < target * (1 - MIN_PART_SHARE) * 0.5;
  }

  get #frameSeconds(): number {
    return this.#durations.estimate / this.#den;
  }

  get #den(): number {
    return this.#track.timebase.den;
  }
}
