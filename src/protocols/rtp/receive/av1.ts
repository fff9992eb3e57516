import { MAX_OBUS, OBU, writeLeb128 } from '../../../codecs/av1-obu.ts';
import { RtpError } from './error.ts';
import type { PayloadFormat, Place } from './frame-assembler.ts';

/** Aggregation header (RTP Payload Format For AV1, section 4.4). */
const CONTINUES = 0x80;
const CONTINUED = 0x40;
const NEW_SEQUENCE = 0x08;
/** OBU header. */
const HAS_EXTENSION = 0x04;
const HAS_SIZE = 0x02;
/** Elements are shorter than packets. */
const MAX_LENGTH_BYTES = 3;

interface Element {
  readonly data: Buffer;
  readonly next: number;
}

/** AV1: elements of OBUs to temporal units, every OBU with its size. */
export class Av1Format implements PayloadFormat {
  /** The OBUs, each of one or more pieces. */
  #units: Buffer[][] = [];
  #inFragments = false;

  /** After a gap only a new sequence, or what begins a temporal unit, surely is the beginning of one. */
  place(payload: Buffer): Place {
    const header = payload[0] as number;
    if ((header & CONTINUES) !== 0) return 'later';
    if ((header & NEW_SEQUENCE) !== 0) return 'first';
    const type = typeOf(readElement(payload, 1, isWithoutLength(header, 0)).data);
    return type === OBU.temporalDelimiter || type === OBU.sequenceHeader ? 'first' : 'later';
  }

  add(payload: Buffer): boolean {
    const header = payload[0] as number;
    if (((header & CONTINUES) !== 0) !== this.#inFragments) throw new RtpError('a piece of an OBU that does not fit');
    for (let at = 1, index = 0; at < payload.length; index++) {
      const { data, next } = readElement(payload, at, isWithoutLength(header, index));
      if (this.#inFragments) this.#units.at(-1)?.push(data);
      else if (data.length > 0) this.#open(data);
      this.#inFragments = next >= payload.length && (header & CONTINUED) !== 0;
      at = next;
    }
    return false;
  }

  take(): Buffer | undefined {
    const units = this.#inFragments ? [] : this.#units.filter(([first]) => isKept(typeOf(first as Buffer)));
    this.clear();
    return units.length === 0 ? undefined : Buffer.concat(units.flatMap(withSize));
  }

  clear(): void {
    this.#units = [];
    this.#inFragments = false;
  }

  #open(data: Buffer): void {
    if (this.#units.length === MAX_OBUS) throw new RtpError('a temporal unit of too many OBUs');
    this.#units.push([data]);
  }
}

/** The last of as many elements as the header counts. */
function isWithoutLength(header: number, index: number): boolean {
  return ((header >> 4) & 3) === index + 1;
}

/** @throws RtpError */
function readElement(payload: Buffer, start: number, toTheEnd: boolean): Element {
  if (toTheEnd) return { data: payload.subarray(start), next: payload.length };
  let size = 0;
  for (let i = 0; i < MAX_LENGTH_BYTES; i++) {
    const byte = payload[start + i] ?? 0xff;
    size += (byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    const from = start + i + 1;
    if (from + size > payload.length) break;
    return { data: payload.subarray(from, from + size), next: from + size };
  }
  throw new RtpError('an OBU is longer than its packet');
}

function typeOf(obu: Buffer): number {
  return ((obu[0] ?? 0) >> 3) & 15;
}

function isKept(type: number): boolean {
  return type !== OBU.temporalDelimiter && type !== OBU.tileList && type !== OBU.padding;
}

/** The pieces of one OBU, with its size behind the header. */
function withSize(pieces: Buffer[]): Buffer[] {
  const [first, ...rest] = pieces as [Buffer, ...Buffer[]];
  const header = first[0] as number;
  if ((header & HAS_SIZE) !== 0) return pieces;
  const length = (header & HAS_EXTENSION) !== 0 ? 2 : 1;
  if (first.length < length) return rest.length === 0 ? pieces : withSize([Buffer.concat(pieces)]);
  const size = pieces.reduce((sum, piece) => sum + piece.length, -length);
  first[0] = header | HAS_SIZE;
  return [first.subarray(0, length), writeLeb128(size), first.subarray(length), ...rest];
}
