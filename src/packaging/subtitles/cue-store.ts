import type { Packet } from '../../core/packet.ts';
import { readCue } from '../../core/subtitle-cue.ts';
import type { PlacedCue } from './web-vtt.ts';

/** Most cues of a time, and bytes of them: each part and segment has a copy of those of its time. */
const MAX_CUES = 200;
const MAX_BYTES = 128 * 1024;
/** A cue that is further ahead of the media than this is of a timeline that the source has left. */
const MAX_AHEAD_MS = 60_000;

interface StoredCue extends PlacedCue {
  readonly bytes: number;
}

/** Cues of one subtitle track whose time is not over, in the source's time. */
export class CueStore {
  #cues: readonly StoredCue[] = [];

  /** Adds the cue of a packet. @returns false if the packet is none, or older cues were dropped for it */
  add({ pts, duration, data, track: { timebase } }: Packet): boolean {
    const cue = readCue(data);
    if (cue === undefined) return false;
    const ms = (1000 * timebase.num) / timebase.den;
    const all = [...this.#cues, { ...cue, start: pts * ms, end: (pts + duration) * ms, bytes: data.length }];
    let bytes = all.reduce((sum, one) => sum + one.bytes, 0);
    const kept = all.filter(({ bytes: own }, index) => {
      const isTooMany = all.length - index > MAX_CUES || bytes > MAX_BYTES;
      if (isTooMany) bytes -= own;
      return !isTooMany;
    });
    this.#cues = kept;
    return kept.length === all.length;
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
