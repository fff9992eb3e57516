import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { Breaks } from './breaks.ts';
import type { Cut } from './cut.ts';
import type { Leaders } from './leaders.ts';
import type { SegmentLength } from './segment-length.ts';
import type { TrackPackager } from './track-packager.ts';

/** Seconds of the shortest segment that a splice may cut. */
const LEAST_SECONDS = 0.2;
const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;

/** Decides at which frames segments begin: at key frames of the leaders once their time is reached, or a splice is due. */
export class CutSchedule<Data> {
  readonly #leaders: Leaders<Data>;
  readonly #breaks: Breaks;
  readonly #length: SegmentLength;
  readonly #maxSeconds: number;
  /** Begin of the growing segments, in media seconds. */
  #begin = 0;
  /** Seconds from the decode time of that cut to its presentation time. */
  #reordering = 0;

  /** @param maxSeconds after which a segment ends without a key frame */
  constructor(leaders: Leaders<Data>, breaks: Breaks, length: SegmentLength, maxSeconds: number) {
    this.#leaders = leaders;
    this.#breaks = breaks;
    this.#length = length;
    this.#maxSeconds = maxSeconds;
  }

  /** Begins the first segments, also after an end. @param packet at which the cut is */
  start(cut: Cut, packet: Packet): void {
    this.#length.restart();
    this.#enter(cut, packet, true);
  }

  /** Ends the growing segments, and begins others. @param packet at which the cut is */
  next(cut: Cut, packet: Packet): void {
    this.#length.end(cut.time - this.#begin);
    this.#enter(cut, packet, cut.jump);
  }

  /** Whether a segment with one more frame would be too large or too long. */
  isFull(packager: TrackPackager<Data>, packet: Packet): boolean {
    return packager.elapsed(packet) >= this.#maxSeconds || packager.openBytes + packet.data.length > MAX_SEGMENT_BYTES;
  }

  /** Whether a frame begins a segment. */
  isDue(packager: TrackPackager<Data>, packet: Packet): boolean {
    if (!packet.key || !this.#leaders.isFirst(packager, toSeconds(packet.dts, packet.track.timebase))) return false;
    const elapsed = packager.elapsed(packet);
    return (
      elapsed >= this.#length.seconds - packager.tolerance ||
      (elapsed >= LEAST_SECONDS && this.#breaks.isDue(presentation(packet), packager.frameSeconds))
    );
  }

  /** Predicts `PackagerLimits.nextCut` of a track. */
  nextFor(packager: TrackPackager<Data>): number | undefined {
    const begin = this.#begin;
    const earliest = ({ frameSeconds, tolerance }: TrackPackager<Data>): number => {
      // assumes the same delay from decoding to presentation as at the cut
      const due = this.#breaks.dueAt(frameSeconds) - this.#reordering;
      return Math.min(begin + this.#length.seconds - tolerance, Math.max(begin + LEAST_SECONDS, due));
    };
    return this.#leaders.has(packager) ? earliest(packager) : this.#leaders.dueFor(packager, earliest);
  }

  /** @param anew whether a new timeline begins */
  #enter(cut: Cut, packet: Packet, anew: boolean): void {
    const time = presentation(packet);
    this.#begin = cut.time;
    this.#reordering = time - cut.time;
    this.#breaks.cut(cut, time, anew);
  }
}

function presentation({ pts, track }: Packet): number {
  return toSeconds(pts, track.timebase);
}
