import type { ElementaryStream } from './elementary.ts';
import { isOfStream, pesBytes, readPesHeader, type PesHeader } from './pes-header.ts';

const FIRST_BYTES = 16 * 1024;
/** Largest packets: for video, 20 times a frame of 50 Mbit/s; for others the 16-bit length is the limit. */
const MAX_BYTES = Object.freeze({ video: 4 * 1024 * 1024, audio: 128 * 1024, data: 128 * 1024 });
/** Largest buffer kept for the next packet. */
const USUAL_BYTES = 512 * 1024;
/** Packets of open length that must have ended with padding, with none padded earlier, before padding counts as their end. */
const CONFIRMATIONS = 16;
const PREFIX_BYTES = 6;

export interface PesReaderEvents {
  /** Reports a whole PES packet. @param payload is valid until the call returns */
  pes(header: PesHeader, payload: Buffer): void;
  /** Reports an incomplete packet, which is dropped. */
  damaged(reason: string): void;
}

/**
 * Extracts the PES packets of one PID (ISO/IEC 13818-1 2.4.3.6). A packet of known length is passed on with its last
 * byte. One of open length, as video has, ends where the next one starts, a frame later. But padding, which moves its
 * end to the end of a transport packet, shows the end at once, if this sender was seen to pad at no other place.
 */
export class PesReader {
  readonly #maxBytes: number;
  readonly #events: PesReaderEvents;
  #buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #have = 0;
  #open = false;
  /** Size of the open packet; 0 when its header leaves it open, undefined before the header arrives. */
  #wanted: number | undefined;
  #filled = false;
  #confirmations = 0;
  /** Whether padding ended the last packet, and no other has started. */
  #endedEarly = false;

  constructor(kind: ElementaryStream['kind'], events: PesReaderEvents) {
    this.#maxBytes = MAX_BYTES[kind];
    this.#events = events;
  }

  /**
   * @param data holds the payload of a transport packet, between `from` and `to`
   * @param starts whether a PES packet starts in it
   * @param filled whether the transport packet has padding
   */
  payload(data: Buffer, from: number, to: number, starts: boolean, filled: boolean): void {
    if (starts) {
      this.#end();
      this.#open = true;
      this.#have = 0;
      this.#wanted = undefined;
      this.#endedEarly = false;
    } else if (!this.#open) {
      if (this.#endedEarly) this.#mistaken();
      return;
    } else if (this.#filled) {
      // earlier padding was not the end
      this.#confirmations = -Infinity;
    }
    this.#filled = filled;
    if (!this.#append(data, from, to)) return;
    if (this.#wanted === undefined && this.#have >= PREFIX_BYTES && !this.#begin()) return;
    const wanted = this.#wanted as number;
    if (wanted > 0 && this.#have >= wanted) this.#deliver(wanted);
    else if (wanted === 0 && filled && this.#confirmations >= CONFIRMATIONS) {
      this.#endedEarly = true;
      this.#deliver(this.#have);
    }
  }

  lost(): void {
    this.#open = false;
    this.#endedEarly = false;
  }

  /** Ends the open packet, since nothing follows. */
  flush(): void {
    this.#end();
  }

  #begin(): boolean {
    this.#wanted = pesBytes(this.#buffer.subarray(0, this.#have));
    if (this.#wanted !== undefined) return true;
    this.#drop('a PES packet without its start code');
    return false;
  }

  #append(data: Buffer, from: number, to: number): boolean {
    const end = this.#have + to - from;
    if (end > this.#maxBytes) {
      this.#drop('a PES packet of too many bytes');
      return false;
    }
    if (end > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(this.#maxBytes, Math.max(end, 2 * this.#buffer.length)));
      this.#buffer.copy(larger, 0, 0, this.#have);
      this.#buffer = larger;
    }
    data.copy(this.#buffer, this.#have, from, to);
    this.#have = end;
    return end >= PREFIX_BYTES;
  }

  /** Ends the open packet, whatever its length field says: missing bytes are reported by `lost`. */
  #end(): void {
    if (!this.#open) return;
    if (this.#wanted === 0 && this.#filled) this.#confirmations++;
    this.#deliver(this.#have);
  }

  #deliver(bytes: number): void {
    this.#open = false;
    const whole = this.#buffer.subarray(0, bytes);
    if (whole.length < PREFIX_BYTES) this.#drop('a PES packet that is cut off');
    else if (isOfStream(whole)) this.#report(whole);
    if (this.#buffer.length > USUAL_BYTES) this.#buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  }

  #report(whole: Buffer): void {
    const header = readPesHeader(whole);
    if (header === undefined) this.#events.damaged('a malformed PES packet');
    else if (header.scrambled) this.#events.damaged('a scrambled PES packet');
    else this.#events.pes(header, whole.subarray(header.length));
  }

  #drop(reason: string): void {
    this.#open = false;
    this.#events.damaged(reason);
  }

  #mistaken(): void {
    this.#endedEarly = false;
    this.#confirmations = -Infinity;
    this.#events.damaged('a PES packet with padding before its end');
  }
}
