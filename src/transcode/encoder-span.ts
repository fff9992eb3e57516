import { rescale, type Timebase } from '../core/timebase.ts';
import type { BitstreamFormat, BitstreamSink, EncodedPacket } from '../media-child/bitstream.ts';
import { OFFSET_SECONDS } from './frame-grid.ts';

interface SpanOwner {
  take(span: EncoderSpan, item: BitstreamFormat | EncodedPacket): void;
  ended(span: EncoderSpan): void;
}

/**
 * Output of one encoder process for an encode, of the times from `from` to `until`, in ticks of the encode. A span may
 * begin before earlier ones have ended; its output is held until then.
 */
export class EncoderSpan implements BitstreamSink {
  readonly #owner: SpanOwner;
  readonly #timebase: Timebase;
  readonly from: number;
  until = Infinity;
  held: (BitstreamFormat | EncodedPacket)[] = [];
  #source: Timebase;
  #ended = false;

  /** @param timebase of the encode */
  constructor(owner: SpanOwner, timebase: Timebase, from: number) {
    this.#owner = owner;
    this.#timebase = timebase;
    this.#source = timebase;
    this.from = from;
  }

  get ended(): boolean {
    return this.#ended;
  }

  format(format: BitstreamFormat): void {
    this.#source = format.timebase;
    this.#owner.take(this, { ...format, timebase: this.#timebase });
  }

  packet({ dts, pts, duration, key, data }: EncodedPacket): void {
    this.#owner.take(this, {
      dts: this.#time(dts),
      pts: this.#time(pts),
      duration: rescale(duration, this.#source, this.#timebase),
      key,
      data,
    });
  }

  /** Ends the span. Idempotent. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#owner.ended(this);
  }

  #time(ticks: number): number {
    const { num, den } = this.#timebase;
    return rescale(ticks, this.#source, this.#timebase) - (OFFSET_SECONDS * den) / num;
  }
}
