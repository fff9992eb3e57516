import { BitReader, tolerant } from './bits.ts';
import { parseSliceStart, SLICE } from './h264-slice.ts';
import { canonicalizeNals, nalUnits, type CanonicalUnit, type LengthSize, type NalRole } from './nal.ts';
import { RECOVERY_POINT, seiMessage, type StartKind } from './recovery-point.ts';

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

export function nalType(nal: Buffer): number {
  return (nal[0] as number) & 0x1f;
}

export function isKeyNal(nal: Buffer): boolean {
  return nalType(nal) === NAL.idr;
}

export function isParameterSet(nal: Buffer): boolean {
  const type = nalType(nal);
  return type === NAL.sps || type === NAL.pps || type === NAL.spsExtension;
}

/**
 * How decoding can start at an access unit of 4-byte length-prefixed NAL units; undefined when it cannot. `idr` is an IDR
 * picture. `open` is a recovery point at an intra picture that recovers at once: pictures after it that are shown before it
 * may not decode. `gradual` is a recovery point whose pictures are complete only frames later.
 * @throws BitstreamError when the unit is malformed up to its first slice
 */
export function startOf(data: Buffer): StartKind | undefined {
  let recovery: number | undefined;
  for (const nal of nalUnits(data)) {
    const type = nalType(nal);
    if (isKeyNal(nal)) return 'idr';
    if (type === NAL.slice || type === NAL.partitionA) {
      if (recovery === undefined) return undefined;
      if (recovery > 0) return 'gradual';
      return isIntraSlice(nal) ? 'open' : undefined;
    }
    if (type === NAL.sei) recovery ??= recoveryFrames(nal);
  }
  return undefined;
}

/**
 * Converts an access unit to the canonical form of `Packet`.
 * @param trusts do not search slices for start codes
 * @throws BitstreamError
 */
export function canonicalize(data: Buffer, lengthSize: LengthSize, trusts = false): CanonicalUnit {
  return canonicalizeNals(data, lengthSize, role, trusts);
}

/**
 * Id of the PPS of the first slice in an access unit of 4-byte length-prefixed NAL units; undefined without a slice.
 * @throws BitstreamError when the unit is malformed up to that slice
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

/** Frames from a recovery point to complete pictures (H.264 D.1.8); undefined when the message is cut off. */
function recoveryFrames(nal: Buffer): number | undefined {
  const message = seiMessage(nal, 1, RECOVERY_POINT);
  return message && tolerant(() => new BitReader(message).ue());
}
