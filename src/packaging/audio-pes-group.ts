import type { TsUnit } from '../containers/mpegts/planned-unit.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack } from '../core/track.ts';
import { FrameDuration } from './frame-duration.ts';

/** Bytes of audio in one PES packet: enough to fill all transport packets but the last. */
export const MAX_GROUP_BYTES = 2800;
/** Share of a frame's duration by which the step to the next may differ. */
const HOLE = 0.25;
/** Seconds that live audio is held: half of the delay from PCR to decode time. */
const MAX_LIVE_SECONDS = 0.1;

/** Whether a step between frames is what players assume: in a group, they know only the time of the first frame. */
export function isInStep(duration: number, step: number): boolean {
  return Math.abs(step - duration) <= duration * HOLE;
}

/** Groups the frames of a live audio track into PES packets. */
export class AudioPesGroup {
  readonly track: MediaTrack;
  readonly #durations: FrameDuration;
  #frames: Packet[] = [];
  #bytes = 0;
  #ticks = 0;
  #last: { readonly dts: number; readonly duration: number } | undefined;

  /** @throws BitstreamError for a malformed configuration */
  constructor(track: MediaTrack) {
    this.track = track;
    this.#durations = new FrameDuration(track);
  }

  /**
   * @returns complete groups
   * @throws BitstreamError for a frame that has no duration, which is left out
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

  /** Takes the incomplete group if it has waited long enough. @param now seconds, on the clock of the stream */
  due(now: number): TsUnit[] {
    const [first] = this.#frames;
    return first !== undefined && now - toSeconds(first.dts, this.track.timebase) >= MAX_LIVE_SECONDS
      ? this.take()
      : [];
  }

  /** Takes the incomplete group. */
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
