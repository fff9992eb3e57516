import { sectionCrc } from './crc.ts';
import { writeDescriptors } from './descriptors.ts';
import { PACKET_BYTES, SYNC_BYTE, TABLE_ID, type Descriptor } from './stream-types.ts';

/** The only program, and the PID of its PMT. */
export const PROGRAM = { number: 1, pid: 0x1000 } as const;

const TRANSPORT_STREAM_ID = 1;
const HEAD_BYTES = 3;
const CRC_BYTES = 4;
/** section_length of PAT and PMT (ISO/IEC 13818-1 2.4.4.4, 2.4.4.9). */
const MAX_LENGTH = 1021;
const VERSIONS = 32;

export interface ListedStream {
  readonly pid: number;
  readonly streamType: number;
  readonly descriptors: readonly Descriptor[];
}

export interface ListedProgram {
  /** Counted from 0, not wrapped. */
  readonly version: number;
  readonly pcrPid: number;
  readonly descriptors: readonly Descriptor[];
  readonly streams: readonly ListedStream[];
}

/** Builds a program association section with the one program. */
export function buildPat(): Buffer {
  const body = Buffer.alloc(4);
  body.writeUInt16BE(PROGRAM.number, 0);
  body.writeUInt16BE(0xe000 | PROGRAM.pid, 2);
  return tableSection(TABLE_ID.pat, TRANSPORT_STREAM_ID, 0, body);
}

/** Builds a program map section; undefined if there are too many streams for one. */
export function buildPmt({ version, pcrPid, descriptors, streams }: ListedProgram): Buffer | undefined {
  const body = Buffer.concat([
    u16(0xe000 | pcrPid),
    loop(descriptors),
    ...streams.flatMap(({ pid, streamType, descriptors: own }) => [
      Buffer.of(streamType),
      u16(0xe000 | pid),
      loop(own),
    ]),
  ]);
  return 5 + body.length + CRC_BYTES > MAX_LENGTH
    ? undefined
    : tableSection(TABLE_ID.pmt, PROGRAM.number, version, body);
}

export function sectionPackets(section: Buffer): number {
  // the pointer field precedes the section
  return Math.ceil((1 + section.length) / (PACKET_BYTES - 4));
}

/**
 * Writes a section into transport packets of its own.
 * @param counter continuity_counter of the first
 * @returns the end
 */
export function writeSection(out: Buffer, at: number, pid: number, counter: number, section: Buffer): number {
  let from = 0;
  for (let packet = at; from < section.length || packet === at; packet += PACKET_BYTES) {
    const first = packet === at;
    out[packet] = SYNC_BYTE;
    out.writeUInt16BE((first ? 0x4000 : 0) | pid, packet + 1);
    out[packet + 3] = 0x10 | ((counter + (packet - at) / PACKET_BYTES) & 15);
    if (first) out[packet + 4] = 0;
    const start = packet + (first ? 5 : 4);
    const taken = section.copy(out, start, from, from + packet + PACKET_BYTES - start);
    out.fill(0xff, start + taken, packet + PACKET_BYTES);
    from += taken;
  }
  return at + sectionPackets(section) * PACKET_BYTES;
}

function tableSection(tableId: number, extension: number, version: number, body: Buffer): Buffer {
  const section = Buffer.alloc(HEAD_BYTES + 5 + body.length + CRC_BYTES);
  section[0] = tableId;
  section.writeUInt16BE(0xb000 | (section.length - HEAD_BYTES), 1);
  section.writeUInt16BE(extension, 3);
  // current_next_indicator; the only section of the table
  section[5] = 0xc1 | ((version % VERSIONS) << 1);
  body.copy(section, 8);
  const end = section.length - CRC_BYTES;
  section.writeUInt32BE(sectionCrc(section.subarray(0, end)), end);
  return section;
}

function loop(descriptors: readonly Descriptor[]): Buffer {
  const bytes = writeDescriptors(descriptors);
  return Buffer.concat([u16(0xf000 | bytes.length), bytes]);
}

function u16(value: number): Buffer {
  return Buffer.of(value >> 8, value & 0xff);
}
