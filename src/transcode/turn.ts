import { rescale, type Timebase } from '../core/timebase.ts';
import type { BitstreamFormat, BitstreamSink, EncodedPacket } from '../media-child/bitstream.ts';
import { OFFSET_SECONDS } from './frame-grid.ts';

/** Whom an encoder's output goes to. */
interface TurnOwner {
  take(turn: Turn, item: BitstreamFormat | EncodedPacket): void;
  ended(turn: Turn): void;
}

/**
 * What one encoder process puts out for an encode: the times from `from` to `until`, in ticks of the encode.
 * It may begin before those in front of it have ended; what it puts out waits for that.
 */
export class Turn implements BitstreamSink {
  readonly #owner: TurnOwner;
  readonly #timebase: Timebase;
  readonly from: number;
  until = Infinity;
  /** Formats and packets that wait. */
  held: (BitstreamFormat | EncodedPacket)[] = [];
  #source: Timebase;
  #ended = false;

  /** @param timebase of the encode */
  constructor(owner: TurnOwner, timebase: Timebase, from: number) {
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

  /** Nothing comes any more. Idempotent. */
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
