import { RtpError } from './error.ts';
import type { PayloadFormat, Place } from './frame-assembler.ts';

/** Part of a frame in one payload. */
export interface Fragment {
  readonly place: Place;
  /** Ends the frame, whatever the marker says. */
  readonly isLast: boolean;
  readonly data: Buffer;
}

/** Formats whose frames are the concatenated pieces of their payloads. */
export class JoinedFormat implements PayloadFormat {
  readonly #read: (payload: Buffer) => Fragment;
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  /** Fragment of the payload that `place` was last called with. */
  #latest: Fragment | undefined;

  /** @param read what is in one payload; throws RtpError */
  constructor(read: (payload: Buffer) => Fragment) {
    this.#read = read;
  }

  place(payload: Buffer): Place {
    this.#latest = this.#read(payload);
    return this.#latest.place;
  }

  add(): boolean {
    const { place, isLast, data } = this.#latest as Fragment;
    if ((place === 'first') !== (this.#parts.length === 0)) throw new RtpError('a piece of a frame that does not fit');
    this.#parts.push(data);
    this.#bytes += data.length;
    return isLast;
  }

  take(): Buffer | undefined {
    const [first] = this.#parts;
    const frame = this.#parts.length > 1 ? Buffer.concat(this.#parts, this.#bytes) : first;
    this.clear();
    return frame;
  }

  clear(): void {
    this.#parts.length = 0;
    this.#bytes = 0;
  }
}
