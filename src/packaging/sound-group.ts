import type { TsUnit } from '../containers/mpegts/planned-unit.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack } from '../core/track.ts';
import { FrameDuration } from './frame-duration.ts';

/** What one PES packet of sound takes together: transport packets are then full but for the last. */
export const MAX_GROUP_BYTES = 2800;
/** Frames further apart than this share of their duration do not follow each other. */
const HOLE = 0.25;
/** Sound that is sent while it comes waits for no more: players have the PCR twice as far in front of it. */
const MAX_LIVE_SECONDS = 0.1;

/** Whether a step from one frame to the next is what players count on, who know the time of the first alone. */
export function isInStep(duration: number, step: number): boolean {
  return Math.abs(step - duration) <= duration * HOLE;
}

/** Puts the frames of one sound into groups while they come. */
export class LiveSound {
  readonly track: MediaTrack;
  readonly #durations: FrameDuration;
  #frames: Packet[] = [];
  #bytes = 0;
  #ticks = 0;
  /** Decode time of the last frame, and what it lasts. */
  #last: { readonly dts: number; readonly duration: number } | undefined;

  /** @throws BitstreamError for a configuration that is malformed */
  constructor(track: MediaTrack) {
    this.track = track;
    this.#durations = new FrameDuration(track);
  }

  /**
   * @returns groups that are complete
   * @throws BitstreamError for a frame that does not tell how long it lasts, which is left out
   */
  push(packet: Packet): TsUnit[] {
    const last = this.#last;
    const step = last === undefined ? undefined : packet.dts - last.dts;
    const duration = this.#durations.predict(packet, step);
    this.#last = { dts: packet.dts, duration };
    const follows =
      last !== undefined &&
      isInStep(last.duration, step as number) &&
      this.#bytes + packet.data.length <= MAX_GROUP_BYTES;
    const before = follows ? [] : this.take();
    this.#frames.push(packet);
    this.#bytes += packet.data.length;
    this.#ticks += duration;
    return toSeconds(this.#ticks + duration, this.track.timebase) > MAX_LIVE_SECONDS
      ? [...before, ...this.take()]
      : before;
  }

  /** What waits for more, if it has waited long enough. @param now seconds, on the clock of the stream */
  due(now: number): TsUnit[] {
    const [first] = this.#frames;
    return first !== undefined && now - toSeconds(first.dts, this.track.timebase) >= MAX_LIVE_SECONDS
      ? this.take()
      : [];
  }

  /** What waits for more. */
  take(): TsUnit[] {
    const [first] = this.#frames;
    if (first === undefined) return [];
    const { track, dts, pts, key } = first;
    const unit = { track, dts, pts, key, data: this.#frames.map(({ data }) => data) };
    this.#frames = [];
    this.#bytes = 0;
    this.#ticks = 0;
    return [unit];
  }
}
