import { readDescriptors } from './descriptors.ts';
import { TABLE_ID, type Descriptor } from './stream-types.ts';

export interface Program {
  readonly number: number;
  /** PID of its PMT. */
  readonly pid: number;
}

export interface ProgramStream {
  readonly pid: number;
  readonly type: number;
  readonly descriptors: readonly Descriptor[];
}

export interface ProgramMap {
  readonly program: number;
  readonly pcrPid: number;
  readonly descriptors: readonly Descriptor[];
  readonly streams: readonly ProgramStream[];
}

const PAT_HEADER_BYTES = 8;
const PMT_HEADER_BYTES = 12;
const CRC_BYTES = 4;
/** Program number of the network information. */
const NETWORK = 0;
const CURRENT = 1;

/**
 * Reads the programs of a PAT, in order (ISO/IEC 13818-1 2.4.4.3). Of a PAT in several sections, the first counts.
 * @param section with the right checksum
 * @returns undefined for another table, and one that is not in force yet
 */
export function readPat(section: Buffer): Program[] | undefined {
  if (!isInForce(section, TABLE_ID.pat, PAT_HEADER_BYTES)) return undefined;
  const programs: Program[] = [];
  for (let at = PAT_HEADER_BYTES; at + 4 <= section.length - CRC_BYTES; at += 4) {
    const number = section.readUInt16BE(at);
    if (number !== NETWORK) programs.push({ number, pid: section.readUInt16BE(at + 2) & 0x1fff });
  }
  return programs;
}

/**
 * Reads a PMT (ISO/IEC 13818-1 2.4.4.8). Descriptors are slices of the section.
 * @param section with the right checksum
 * @returns undefined for another table, and one that is not in force yet
 */
export function readPmt(section: Buffer): ProgramMap | undefined {
  if (!isInForce(section, TABLE_ID.pmt, PMT_HEADER_BYTES)) return undefined;
  const end = section.length - CRC_BYTES;
  const first = PMT_HEADER_BYTES + (section.readUInt16BE(10) & 0xfff);
  if (first > end) return undefined;
  const streams: ProgramStream[] = [];
  for (let at = first; at + 5 <= end;) {
    const next = at + 5 + (section.readUInt16BE(at + 3) & 0xfff);
    if (next > end) break;
    streams.push({
      pid: section.readUInt16BE(at + 1) & 0x1fff,
      type: section.readUInt8(at),
      descriptors: readDescriptors(section.subarray(at + 5, next)),
    });
    at = next;
  }
  return {
    program: section.readUInt16BE(3),
    pcrPid: section.readUInt16BE(8) & 0x1fff,
    descriptors: readDescriptors(section.subarray(PMT_HEADER_BYTES, first)),
    streams,
  };
}

function isInForce(section: Buffer, tableId: number, headerBytes: number): boolean {
  return (
    section.length >= headerBytes + CRC_BYTES &&
    section[0] === tableId &&
    ((section[5] as number) & CURRENT) !== 0 &&
    section[6] === 0
  );
}
