import { BitReader, tolerant } from './bits.ts';
import { parseSliceStart, SLICE } from './h264-slice.ts';
import { canonicalizeNals, nalUnits, unescapeNal, type CanonicalUnit, type LengthSize, type NalRole } from './nal.ts';

export { activeSets, codecString, parseAvcConfig, placeOfSet, type AvcConfig } from './h264-config.ts';
export { parseSps, type H264Sps } from './h264-sps.ts';

/** NAL unit types (H.264 table 7-1). */
export const NAL = Object.freeze({
  slice: 1,
  partitionA: 2,
  idr: 5,
  sei: 6,
  sps: 7,
  pps: 8,
  delimiter: 9,
  endOfSequence: 10,
  endOfStream: 11,
  filler: 12,
  spsExtension: 13,
});

const RECOVERY_POINT = 6;

export function nalType(nal: Buffer): number {
  return (nal[0] as number) & 0x1f;
}

/** A slice of an IDR picture. */
export function isKeyNal(nal: Buffer): boolean {
  return nalType(nal) === NAL.idr;
}

export function isParameterSet(nal: Buffer): boolean {
  const type = nalType(nal);
  return type === NAL.sps || type === NAL.pps || type === NAL.spsExtension;
}

/**
 * Whether decoding can start at an access unit of 4-byte length-prefixed NAL units: an IDR picture,
 * or an intra picture behind a recovery point that recovers at once (open GOP). A gradual refresh,
 * which shows a whole picture only frames later, is none unless it is asked for.
 * @param gradual where a gradual refresh begins counts as well
 * @throws BitstreamError when the unit is malformed up to its first slice
 */
export function isKeyAccessUnit(data: Buffer, gradual = false): boolean {
  let recovery: number | undefined;
  for (const nal of nalUnits(data)) {
    const type = nalType(nal);
    if (isKeyNal(nal)) return true;
    if (type === NAL.slice || type === NAL.partitionA)
      return recovery === 0 ? isIntraSlice(nal) : gradual && recovery !== undefined;
    if (type === NAL.sei) recovery ??= recoveryFrames(nal);
  }
  return false;
}

/** Whether an access unit is an IDR picture. @throws BitstreamError when it is malformed up to its first slice */
export function isIdrAccessUnit(data: Buffer): boolean {
  for (const nal of nalUnits(data)) {
    if (isKeyNal(nal)) return true;
    if (nalType(nal) < NAL.idr) return false;
  }
  return false;
}

/**
 * Brings an access unit into the canonical form of `Packet`.
 * @param trusts slices are what they should be: no start codes are looked for in them
 * @throws BitstreamError
 */
export function canonicalize(data: Buffer, lengthSize: LengthSize, trusts = false): CanonicalUnit {
  return canonicalizeNals(data, lengthSize, role, trusts);
}

/**
 * Id of the PPS that the picture in an access unit of 4-byte length-prefixed NAL units refers to; undefined when it has no
 * slice.
 * @throws BitstreamError when the unit is malformed up to the first one
 */
export function pictureParameterSet(data: Buffer): number | undefined {
  for (const nal of nalUnits(data)) {
    const type = nalType(nal);
    if (type === NAL.slice || type === NAL.partitionA || type === NAL.idr) return parseSliceStart(nal).pps;
  }
  return undefined;
}

function role(nal: Buffer): NalRole {
  if (isParameterSet(nal)) return 'parameterSet';
  const type = nalType(nal);
  if (type >= NAL.slice && type <= NAL.idr) return 'slice';
  return type === NAL.delimiter || type === NAL.filler ? 'disposable' : 'media';
}

function isIntraSlice(nal: Buffer): boolean {
  const { type } = parseSliceStart(nal);
  return type === SLICE.i || type === SLICE.si;
}

/**
 * How many frames behind a recovery point pictures are whole (SEI messages: H.264 7.3.2.3.1; recovery point: D.1.8).
 * One that is cut off tells nothing.
 */
function recoveryFrames(nal: Buffer): number | undefined {
  const data = unescapeNal(nal);
  let at = 1;
  // the last byte holds the trailing bits: a message needs two more
  while (at + 2 < data.length) {
    let type = 0;
    let size = 0;
    // each is the sum of bytes up to the first that is not 0xff
    for (; data[at] === 0xff; at++) type += 255;
    type += data[at++] ?? 0;
    for (; data[at] === 0xff; at++) size += 255;
    size += data[at++] ?? 0;
    if (type === RECOVERY_POINT) {
      const frames = new BitReader(data.subarray(at, at + size));
      return tolerant(() => frames.ue());
    }
    at += size;
  }
  return undefined;
}
