import type { Sample } from '../containers/fmp4/fragment.ts';
import type { Packet } from '../core/packet.ts';
import type { MediaTrack } from '../core/track.ts';
import type { TimedEvent } from './part-events.ts';
import type { PartForm } from './part-form.ts';
import type { Init } from './segment.ts';

interface Frame {
  readonly packet: Packet;
  readonly dts: number;
  readonly pts: number;
}

/** A part in the form of its package; times in ticks. */
export interface BuiltPart<Data> {
  readonly data: Data;
  readonly bytes: number;
  readonly duration: number;
  /** Whether decoding can start at the first frame; also true of audio. */
  readonly independent: boolean;
}

/** Limits `moof`, which grows with every frame, against sources with absurd timestamps. */
const MAX_FRAMES = 4096;
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Collects the frames of one part. Decode times of successive parts touch: if the last frame of a part lasts longer than
 * predicted, the first frame of the next part is extended by the difference. If it is shorter and frames are not
 * reordered, the parts overlap by it. Presentation times stay exact.
 */
export class PartBuilder<Data> {
  readonly #form: PartForm<Data>;
  #frames: Frame[] = [];
  #bytes = 0;
  #sequence = 0;
  #start = 0;
  #end = 0;
  /** End of the part before; undefined after a break of the timeline. */
  #cursor: number | undefined;

  constructor(form: PartForm<Data>) {
    this.#form = form;
  }

  get empty(): boolean {
    return this.#frames.length === 0;
  }

  get frames(): number {
    return this.#frames.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get full(): boolean {
    return this.#frames.length >= MAX_FRAMES || this.#bytes >= MAX_BYTES;
  }

  /** Decode time of the first frame, in ticks. */
  get start(): number {
    return this.#start;
  }

  /** Predicted end of the newest frame, in ticks. */
  get end(): number {
    return this.#end;
  }

  /** Decode time of the newest frame, in ticks; `end` if the part is empty. */
  get last(): number {
    return this.#frames.at(-1)?.dts ?? this.#end;
  }

  /** Range of presentation times, in ticks. @param end decode time at which the last frame ends */
  shown(end: number): { readonly from: number; readonly to: number } {
    let from = Infinity;
    let to = -Infinity;
    for (const { pts } of this.#frames) {
      from = Math.min(from, pts);
      to = Math.max(to, pts);
    }
    return { from, to: to + end - (this.#frames.at(-1)?.dts ?? end) };
  }

  /** Makes the next part start at its first frame, not at the end of this one. */
  breakTimeline(): void {
    this.#cursor = undefined;
  }

  /**
   * @param duration predicted ticks of the frame
   * @param reach ticks of gap, at most, by which the first frame is extended back to the part before
   */
  add(packet: Packet, dts: number, pts: number, duration: number, reach = duration): void {
    if (this.empty) {
      const cursor = this.#cursor;
      const start = cursor !== undefined && dts <= cursor + reach ? cursor : dts;
      // some players move a frame that is shown before it is decoded
      this.#start = Math.max(0, Math.min(start, Math.max(dts, pts)));
      this.#end = this.#start;
    }
    this.#frames.push({ packet, dts, pts });
    this.#bytes += packet.data.length;
    // keeps the predicted rhythm, unless the frame before turned out much shorter
    const foreseen = this.#end - duration;
    this.#end = (foreseen > dts && foreseen <= dts + duration ? foreseen : Math.max(dts, this.#start)) + duration;
  }

  /**
   * Makes the part and starts the next.
   * @param end ticks where its last frame ends
   * @param events that go out with it
   * @param init of its segment
   */
  build(end: number, events: readonly TimedEvent[], init: Init): BuiltPart<Data> {
    const frames = this.#frames;
    const first = frames[0] as Frame;
    const samples: Sample[] = [];
    let decode = this.#start;
    for (let index = 0; index < frames.length; index++) {
      const { packet, pts } = frames[index] as Frame;
      const next = Math.max(frames[index + 1]?.dts ?? end, decode + 1);
      samples.push({
        duration: next - decode,
        compositionOffset: pts - decode,
        key: packet.key !== false,
        data: packet.data,
      });
      decode = next;
    }
    const track = first.packet.track as MediaTrack;
    const part = this.#form.part(track, init, ++this.#sequence, this.#start, samples, events);
    this.#cursor = decode;
    this.#frames = [];
    this.#bytes = 0;
    return { ...part, duration: decode - this.#start, independent: first.packet.key === true };
  }
}
