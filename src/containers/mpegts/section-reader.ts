import { sectionCrc } from './crc.ts';

/** Bytes up to the length field, and its maximum (ISO/IEC 13818-1 2.4.4.1). */
const HEADER_BYTES = 3;
const MAX_SECTION_BYTES = HEADER_BYTES + 0xfff;
const STUFFING = 0xff;

export interface SectionReaderEvents {
  /** Reports a whole section with its checksum, which is right. Valid until the call returns. */
  section(data: Buffer): void;
  fault(reason: string): void;
}

/** Extracts the sections of one PID, each in one packet or in several (ISO/IEC 13818-1 2.4.4). */
export class SectionReader {
  readonly #events: SectionReaderEvents;
  readonly #buffer = Buffer.alloc(MAX_SECTION_BYTES);
  #have = 0;

  constructor(events: SectionReaderEvents) {
    this.#events = events;
  }

  /**
   * @param data holds the payload of a packet, between `from` and `to`
   * @param starts whether a section starts in it
   */
  payload(data: Buffer, from: number, to: number, starts: boolean): void {
    if (!starts) {
      if (this.#have > 0) this.#take(data, from, to);
      return;
    }
    const first = from + 1 + (data[from] as number);
    if (first > to) {
      this.lost();
      this.#events.fault('a section that starts after the end of its packet');
      return;
    }
    if (this.#have > 0) this.#take(data, from + 1, first);
    this.#have = 0;
    for (let at = first; at < to && data[at] !== STUFFING;) at = this.#take(data, at, to);
  }

  /** Notes that data before the next payload is missing. */
  lost(): void {
    this.#have = 0;
  }

  /** @returns the end of the section, or of the data */
  #take(data: Buffer, from: number, to: number): number {
    let at = from;
    while (at < to) {
      const wanted = this.#have < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + (this.#buffer.readUInt16BE(1) & 0xfff);
      const copied = data.copy(this.#buffer, this.#have, at, Math.min(to, at + wanted - this.#have));
      at += copied;
      this.#have += copied;
      if (this.#have < wanted || this.#have < HEADER_BYTES) return at;
      if (this.#isWhole) {
        this.#finish();
        return at;
      }
    }
    return at;
  }

  get #isWhole(): boolean {
    return this.#have === HEADER_BYTES + (this.#buffer.readUInt16BE(1) & 0xfff);
  }

  #finish(): void {
    const section = this.#buffer.subarray(0, this.#have);
    this.#have = 0;
    if (sectionCrc(section) === 0) this.#events.section(section);
    else this.#events.fault('a section with a wrong checksum');
  }
}
