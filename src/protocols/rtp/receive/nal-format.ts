import { MAX_NALS, startsWithCode } from '../../../codecs/nal.ts';
import { RtpError } from './error.ts';
import type { PayloadFormat, Place } from './frame-assembler.ts';

/** Formats whose frames are access units of NAL units, whole or in fragments, which are copied together once. */
export abstract class NalFormat implements PayloadFormat {
  readonly #parts: Buffer[] = [];
  /** Bytes of each unit, and number of its parts. */
  readonly #sizes: number[] = [];
  readonly #counts: number[] = [];
  #bytes = 0;
  #inFragments = false;

  abstract place(payload: Buffer): Place;

  abstract add(payload: Buffer): boolean;

  /** Takes a whole unit. @throws RtpError when it is empty, one too many, or a fragmented one is not at its end */
  protected unit(nal: Buffer): void {
    if (this.#inFragments) throw new RtpError('a NAL unit inside another');
    if (nal.length === 0) throw new RtpError('an empty NAL unit');
    this.#open(nal);
  }

  /** Takes the units of an aggregation packet, each behind its length in 2 bytes. @throws RtpError */
  protected aggregated(payload: Buffer, start: number): void {
    if (start >= payload.length) throw new RtpError('an aggregation packet without NAL units');
    for (let at = start; at < payload.length;) {
      const end = at + 2 <= payload.length ? at + 2 + payload.readUInt16BE(at) : Infinity;
      if (end > payload.length) throw new RtpError('a NAL unit is longer than its aggregation packet');
      // some senders fill up with zeros
      if (end > at + 2) this.unit(payload.subarray(at + 2, end));
      at = end;
    }
  }

  /** Takes a fragment; the first one brings the unit's header. @throws RtpError */
  protected fragment(part: Buffer, isFirst: boolean, isLast: boolean): void {
    if (isFirst === this.#inFragments) throw new RtpError('a fragment of a NAL unit that does not fit');
    if (isFirst) {
      this.#open(part);
    } else {
      const unit = this.#sizes.length - 1;
      this.#parts.push(part);
      this.#sizes[unit] = (this.#sizes[unit] as number) + part.length;
      this.#counts[unit] = (this.#counts[unit] as number) + 1;
      this.#bytes += part.length;
    }
    this.#inFragments = !isLast;
  }

  /** A fragmented unit is not at its end. */
  get isOpen(): boolean {
    return this.#inFragments;
  }

  /** All units, each behind its length in 4 bytes; undefined when there is none, or the last has no end. */
  take(ended: boolean): Buffer | undefined {
    const sizes = this.#sizes;
    const frame =
      (this.#inFragments && !ended) || sizes.length === 0
        ? undefined
        : Buffer.allocUnsafe(this.#bytes + 4 * sizes.length);
    if (frame !== undefined) {
      let at = 0;
      let part = 0;
      for (let unit = 0; unit < sizes.length; unit++) {
        at = frame.writeUInt32BE(sizes[unit] as number, at);
        for (const end = part + (this.#counts[unit] as number); part < end; part++) {
          const bytes = this.#parts[part] as Buffer;
          frame.set(bytes, at);
          at += bytes.length;
        }
      }
    }
    this.clear();
    return frame;
  }

  clear(): void {
    this.#parts.length = 0;
    this.#sizes.length = 0;
    this.#counts.length = 0;
    this.#bytes = 0;
    this.#inFragments = false;
  }

  #open(part: Buffer): void {
    if (this.#sizes.length >= MAX_NALS) throw new RtpError('a frame of too many NAL units');
    this.#parts.push(part);
    this.#sizes.push(part.length);
    this.#counts.push(1);
    this.#bytes += part.length;
  }
}

/** A NAL unit behind the start code that some senders leave in front of it. */
export function behindStartCode(payload: Buffer): Buffer {
  return startsWithCode(payload) ? payload.subarray(payload[2] === 1 ? 3 : 4) : payload;
}
