import type { Sample } from '../containers/fmp4/fragment.ts';
import type { Packet } from '../core/packet.ts';
import type { TimedEvent } from './part-events.ts';
import type { PartForm } from './part-form.ts';

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
  /** It begins with a picture that every decoder starts at; also true of audio. */
  readonly independent: boolean;
}

/** `moof` grows with every frame: a source with absurd timestamps must not make one of millions. */
const MAX_FRAMES = 4096;
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Collects the frames of one part. Decode times of successive parts touch: where the last frame of a
 * part lasts longer than predicted, the first frame of the next part takes up the difference.
 * Where it was shorter and frames are not reordered, they overlap by it. Presentation times stay exact.
 */
export class PartBuilder<Data> {
  readonly #type: 'video' | 'audio';
  readonly #form: PartForm<Data>;
  #frames: Frame[] = [];
  #bytes = 0;
  #sequence = 0;
  #start = 0;
  #end = 0;
  /** Where the part before ended; undefined after a break of the timeline. */
  #cursor: number | undefined;

  constructor(type: 'video' | 'audio', form: PartForm<Data>) {
    this.#type = type;
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

  /** Where the newest frame is predicted to end, in ticks. */
  get end(): number {
    return this.#end;
  }

  /** Decode time of the newest frame, in ticks; not of an empty part. */
  get last(): number {
    return this.#frames.at(-1)?.dts ?? this.#end;
  }

  /** When its frames are shown, in ticks, if the last one is over at `end`. */
  shown(end: number): { readonly from: number; readonly to: number } {
    let from = Infinity;
    let to = -Infinity;
    for (const { pts } of this.#frames) {
      from = Math.min(from, pts);
      to = Math.max(to, pts);
    }
    return { from, to: to + end - (this.#frames.at(-1)?.dts ?? end) };
  }

  /** The next part starts where its first frame says. */
  breakTimeline(): void {
    this.#cursor = undefined;
  }

  /**
   * @param duration ticks that the frame is predicted to last
   * @param reach ticks that it takes up at most, where the part before ended earlier than it comes
   */
  add(packet: Packet, dts: number, pts: number, duration: number, reach = duration): void {
    if (this.empty) {
      const cursor = this.#cursor;
      const start = cursor !== undefined && dts <= cursor + reach ? cursor : dts;
      // shown before it is decoded, a frame would be moved by some players
      this.#start = Math.max(0, Math.min(start, Math.max(dts, pts)));
      this.#end = this.#start;
    }
    this.#frames.push({ packet, dts, pts });
    this.#bytes += packet.data.length;
    // frames are in step with what was foreseen, but for one that turned out to be much shorter
    const foreseen = this.#end - duration;
    this.#end = (foreseen > dts && foreseen <= dts + duration ? foreseen : Math.max(dts, this.#start)) + duration;
  }

  /**
   * Makes the part and starts the next.
   * @param end ticks where its last frame ends
   * @param events that go out with it
   */
  build(end: number, events: readonly TimedEvent[]): BuiltPart<Data> {
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
    const part = this.#form.part(this.#type, ++this.#sequence, this.#start, samples, events);
    this.#cursor = decode;
    this.#frames = [];
    this.#bytes = 0;
    return { ...part, duration: decode - this.#start, independent: first.packet.key === true };
  }
}
