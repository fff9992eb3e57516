import type { Packet } from '../../core/packet.ts';
import { readCue } from '../../core/subtitle-cue.ts';
import type { PlacedCue } from './web-vtt.ts';

/** Most cues that are shown, or wait for it, at a time. */
const MAX_CUES = 200;
/** A cue that is further ahead of the media than this is of a timeline that the source has left. */
const MAX_AHEAD_MS = 60_000;

/** Cues of one subtitle track whose time is not over, in the source's time. */
export class CueStore {
  #cues: readonly PlacedCue[] = [];

  /** Adds the cue of a packet. @returns false if the packet is none, or another cue was dropped for it */
  add({ pts, duration, data, track: { timebase } }: Packet): boolean {
    const cue = readCue(data);
    if (cue === undefined) return false;
    const ms = (1000 * timebase.num) / timebase.den;
    const isFull = this.#cues.length === MAX_CUES;
    this.#cues = [
      ...(isFull ? this.#cues.slice(1) : this.#cues),
      { ...cue, start: pts * ms, end: (pts + duration) * ms },
    ];
    return !isFull;
  }

  /** Cues that are shown in a span of time, in milliseconds. */
  between(from: number, to: number): readonly PlacedCue[] {
    return this.#cues.filter(({ start, end }) => start < to && end > from);
  }

  /** Drops the cues that are over at a time, in milliseconds. */
  over(time: number): void {
    if (this.#cues.length === 0) return;
    this.#cues = this.#cues.filter(({ start, end }) => end > time && start < time + MAX_AHEAD_MS);
  }
}
