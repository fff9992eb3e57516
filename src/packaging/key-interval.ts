import type { MediaTrack } from '../core/track.ts';

/** How much a shorter interval moves the estimate. */
const WEIGHT = 1 / 4;
/** An interval whose frames fill less than this share has a gap, and is not measured. */
const FILLED = 0.7;
/** Intervals that differ by less than this share of a frame are equal. */
const EQUAL = 0.5;

/** Measures the interval between the key frames of a track. */
export class KeyInterval {
  /**
   * Seconds: the measured interval, else that of the output profile; without either, Infinity for a bypassed track and 0
   * for others. A longer interval counts at once, shorter ones gradually.
   */
  seconds: number;
  #last: number | undefined;
  #frames = 0;
  #measured = false;
  /**
   * The newest interval, in seconds and in frames; undefined where it differs from the one before. After a gap, or a
   * publisher's return, the interval before is expected to continue.
   */
  #steadySeconds: number | undefined;
  #steadyFrames: number | undefined;
  #newest: { readonly seconds: number; readonly frames: number } | undefined;

  constructor(track: MediaTrack) {
    const { keyFrameInterval = 0, framerate = 0 } = track.type === 'video' ? track : {};
    const declared = framerate > 0 ? keyFrameInterval / framerate : 0;
    this.seconds = declared || (track.bypass ? Infinity : 0);
  }

  /**
   * Measures a frame.
   * @param time seconds
   * @param frame seconds that it is expected to last
   * @returns the interval that it ends, if it is a key frame, and whether that is the first
   */
  note(key: boolean, time: number, frame: number): { readonly interval: number; readonly first: boolean } | undefined {
    this.#frames++;
    if (!key) return undefined;
    const interval = time - (this.#last ?? Infinity);
    const frames = this.#frames;
    const valid = interval > 0 && frames * frame >= interval * FILLED;
    this.#last = time;
    this.#frames = 0;
    this.#compare(valid ? { seconds: interval, frames } : undefined, frame);
    if (!valid) return undefined;
    const first = !this.#measured;
    this.#measured = true;
    const grown = first || interval > this.seconds;
    this.seconds = grown ? interval : this.seconds + (interval - this.seconds) * WEIGHT;
    return { interval, first };
  }
  /**
   * Predicts the time of the next key frame from equal intervals.
   * @param from seconds: the earliest result
   * @returns seconds; undefined where intervals differ
   */
  due(from: number): number | undefined {
    if (this.#last === undefined || this.#steadySeconds === undefined) return undefined;
    return this.#last + Math.max(1, Math.ceil((from - this.#last) / this.#steadySeconds)) * this.#steadySeconds;
  }

  /**
   * Whether the next frame is expected to be a key frame. Encoders count seconds or frames.
   * @param time seconds, when that frame is expected
   * @param frame seconds that frames last
   */
  isDue(time: number, frame: number): boolean {
    const due = this.due(time - frame * EQUAL);
    if (due !== undefined) return Math.abs(time - due) <= frame * EQUAL;
    return this.#frames + 1 === this.#steadyFrames;
  }

  #compare(interval: { readonly seconds: number; readonly frames: number } | undefined, frame: number): void {
    const before = this.#newest ?? interval;
    this.#newest = interval;
    if (interval === undefined || before === undefined) return;
    const isSteady = Math.abs(interval.seconds - before.seconds) < frame * EQUAL;
    this.#steadySeconds = isSteady ? interval.seconds : undefined;
    this.#steadyFrames = interval.frames === before.frames ? interval.frames : undefined;
  }
}
