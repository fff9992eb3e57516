import type { Packet } from './packet.ts';
import { readCue, writeCue, type SubtitleCue } from './subtitle-cue.ts';
import { MILLISECONDS, rescale } from './timebase.ts';
import type { SubtitleTrack } from './track.ts';

/** Most cues of a time, and bytes of them: each part and segment has a copy of those of its time. */
const MAX_CUES = 200;
const MAX_BYTES = 128 * 1024;
/** A cue that is further ahead of the media than this is of a timeline that the source has left. */
const MAX_AHEAD_MS = 60_000;

/** A cue with its place on the media timeline, in milliseconds. */
export interface PlacedCue extends SubtitleCue {
  readonly start: number;
  readonly end: number;
}

interface StoredCue extends PlacedCue {
  readonly bytes: number;
}

/** Reads the cue of a packet; undefined if it is none. */
export function placedCue({ pts, duration, data, track: { timebase } }: Packet): PlacedCue | undefined {
  const cue = readCue(data);
  const ms = (1000 * timebase.num) / timebase.den;
  return cue && { ...cue, start: pts * ms, end: (pts + duration) * ms };
}

/** Whether two cues show the same at the same time. */
export function isSame(one: PlacedCue, other: PlacedCue): boolean {
  return (
    one.start === other.start && one.end === other.end && one.text === other.text && one.settings === other.settings
  );
}

/** Writes the packet of a cue. */
export function cuePacket(track: SubtitleTrack, cue: PlacedCue): Packet {
  const [pts, end] = [cue.start, cue.end].map((time) => rescale(Math.round(time), MILLISECONDS, track.timebase));
  return {
    track,
    dts: pts as number,
    pts: pts as number,
    duration: (end as number) - (pts as number),
    key: true,
    data: writeCue(cue),
  };
}

/** Cues of one subtitle track whose time is not over, in the source's time. */
export class CueStore {
  #cues: readonly StoredCue[] = [];

  /** Adds the cue of a packet, once. @returns false if the packet is none, or older cues were dropped for it */
  add(packet: Packet): boolean {
    const cue = placedCue(packet);
    if (cue === undefined) return false;
    if (this.#cues.some((one) => isSame(one, cue))) return true;
    const all = [...this.#cues, { ...cue, bytes: packet.data.length }];
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
