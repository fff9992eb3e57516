import { PACKET_BYTES, SYNC_BYTE } from './stream-types.ts';
import { wrapped } from './times.ts';

/** Adaptation field of a packet, before its payload (ISO/IEC 13818-1 2.4.3.4). */
export interface Adaptation {
  /** Whether decoding can start here. */
  readonly random: boolean;
  /** Whether the PCR belongs to another timeline than the previous one. */
  readonly discontinuity: boolean;
  /** In ticks of 90 kHz, not wrapped. */
  readonly pcr: number | undefined;
}

const HEADER_BYTES = 4;
const ROOM = PACKET_BYTES - HEADER_BYTES;
/** Length and flags; a PCR takes six more bytes. */
const FLAGS_BYTES = 2;
const PCR_BYTES = 6;

/** Number of transport packets for some bytes after an adaptation field. */
export function packetCount(adaptation: Adaptation | undefined, bytes: number): number {
  return Math.max(1, Math.ceil((adaptationBytes(adaptation) + bytes) / ROOM));
}

/**
 * Writes one unit into transport packets, and fills the last one up.
 * @param counter continuity_counter of the first
 * @param bytes of all pieces
 * @returns the end
 */
export function writePackets(
  out: Buffer,
  start: number,
  pid: number,
  counter: number,
  adaptation: Adaptation | undefined,
  pieces: readonly Buffer[],
  bytes: number,
): number {
  let at = start;
  let left = bytes;
  let index = 0;
  let from = 0;
  while (left > 0) {
    const first = at === start;
    const own = first ? adaptationBytes(adaptation) : 0;
    const field = own + Math.max(0, ROOM - own - left);
    out[at] = SYNC_BYTE;
    out[at + 1] = (first ? 0x40 : 0) | (pid >> 8);
    out[at + 2] = pid & 0xff;
    out[at + 3] = (field > 0 ? 0x30 : 0x10) | ((counter + (at - start) / PACKET_BYTES) & 15);
    if (field > 0) writeAdaptation(out, at + HEADER_BYTES, field, first ? adaptation : undefined);
    const end = at + PACKET_BYTES;
    let to = at + HEADER_BYTES + field;
    left -= end - to;
    while (to < end) {
      const piece = pieces[index] as Buffer;
      const until = Math.min(piece.length, from + end - to);
      piece.copy(out, to, from, until);
      to += until - from;
      from = until;
      if (from === piece.length) {
        index++;
        from = 0;
      }
    }
    at = end;
  }
  return at;
}

/** Writes a packet without payload. @param counter of the previous packet: such packets are not counted */
export function writeClock(out: Buffer, at: number, pid: number, counter: number, pcr: number): number {
  out[at] = SYNC_BYTE;
  out.writeUInt16BE(pid, at + 1);
  out[at + 3] = 0x20 | (counter & 15);
  writeAdaptation(out, at + HEADER_BYTES, ROOM, { pcr, random: false, discontinuity: false });
  return at + PACKET_BYTES;
}

function adaptationBytes(adaptation: Adaptation | undefined): number {
  if (adaptation === undefined) return 0;
  return adaptation.pcr === undefined ? FLAGS_BYTES : FLAGS_BYTES + PCR_BYTES;
}

/** @param bytes of the whole field, filling included */
function writeAdaptation(out: Buffer, start: number, bytes: number, adaptation: Adaptation | undefined): void {
  out[start] = bytes - 1;
  if (bytes === 1) return;
  const { random = false, discontinuity = false, pcr } = adaptation ?? {};
  out[start + 1] = (discontinuity ? 0x80 : 0) | (random ? 0x40 : 0) | (pcr === undefined ? 0 : 0x10);
  let at = start + FLAGS_BYTES;
  if (pcr !== undefined) {
    const base = wrapped(pcr);
    out.writeUInt32BE(Math.floor(base / 2), at);
    // reserved bits, and an extension of 0
    out.writeUInt16BE(((base & 1) << 15) | 0x7e00, at + 4);
    at += PCR_BYTES;
  }
  out.fill(0xff, at, start + bytes);
}
