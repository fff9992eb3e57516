import type { MediaTrack } from '../core/track.ts';

/** How fast key frames that come more often than before are believed. */
const WEIGHT = 1 / 4;
/** An interval whose frames fill less of it has a hole in it, and tells nothing. */
const FILLED = 0.7;

/** How far the key frames of a track are apart. */
export class KeyInterval {
  /**
   * Seconds: what was measured, else what an output profile asks for. A source that is passed on may have any.
   * A longer interval counts at once, shorter ones bit by bit.
   */
  seconds: number;
  #last: number | undefined;
  #frames = 0;
  #measured = false;

  constructor(track: MediaTrack) {
    const { keyFrameInterval = 0, framerate = 0 } = track.type === 'video' ? track : {};
    const declared = framerate > 0 ? keyFrameInterval / framerate : 0;
    this.seconds = declared || (track.bypass ? Infinity : 0);
  }

  /**
   * Takes note of a frame.
   * @param time seconds
   * @param frame seconds that it is expected to last
   * @returns the interval that it ends, if it is a key frame, and whether that is the first
   */
  note(key: boolean, time: number, frame: number): { readonly interval: number; readonly first: boolean } | undefined {
    this.#frames++;
    if (!key) return undefined;
    const interval = time - (this.#last ?? Infinity);
    const filled = this.#frames * frame >= interval * FILLED;
    this.#last = time;
    this.#frames = 0;
    if (!(interval > 0 && filled)) return undefined;
    const first = !this.#measured;
    this.#measured = true;
    const grown = first || interval > this.seconds;
    this.seconds = grown ? interval : this.seconds + (interval - this.seconds) * WEIGHT;
    return { interval, first };
  }
}
