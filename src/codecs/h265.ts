import { parseSliceStart } from './h265-slice.ts';
import { canonicalizeNals, nalUnits, type CanonicalUnit, type LengthSize, type NalRole } from './nal.ts';
import { RECOVERY_POINT, seiMessage, type StartKind } from './recovery-point.ts';

export {
  activeSets,
  codecString,
  parseHevcConfig,
  placeOfSet,
  withOpenArrays,
  type HevcConfig,
} from './h265-config.ts';
export { parseSliceStart } from './h265-slice.ts';
export { parseSps, type H265Sps } from './h265-sps.ts';

/** NAL unit types (H.265 table 7-1). */
export const NAL = Object.freeze({
  firstIrap: 16,
  idrWithLeading: 19,
  idr: 20,
  cra: 21,
  lastIrap: 23,
  lastVcl: 31,
  vps: 32,
  sps: 33,
  pps: 34,
  delimiter: 35,
  endOfSequence: 36,
  endOfBitstream: 37,
  filler: 38,
  prefixSei: 39,
  suffixSei: 40,
});

export function nalType(nal: Buffer): number {
  return ((nal[0] as number) >> 1) & 0x3f;
}

/** Whether a slice belongs to an IDR, BLA or CRA picture, where decoding can start. */
export function isKeyNal(nal: Buffer): boolean {
  const type = nalType(nal);
  return type >= NAL.firstIrap && type <= NAL.lastIrap;
}

export function isParameterSet(nal: Buffer): boolean {
  const type = nalType(nal);
  return type === NAL.vps || type === NAL.sps || type === NAL.pps;
}

/**
 * How decoding can start at an access unit of 4-byte length-prefixed NAL units; undefined when it cannot. `idr` is an IDR
 * picture. `open` is a CRA or BLA picture: pictures after it that are shown before it may not decode. `gradual` is a recovery
 * point at another picture.
 * @throws BitstreamError when the unit is malformed before its first slice
 */
export function startOf(data: Buffer): StartKind | undefined {
  let recovers = false;
  for (const nal of nalUnits(data)) {
    const type = nalType(nal);
    if (type === NAL.idrWithLeading || type === NAL.idr) return 'idr';
    if (isKeyNal(nal)) return 'open';
    if (type <= NAL.lastVcl) return recovers ? 'gradual' : undefined;
    if (type === NAL.prefixSei) recovers ||= seiMessage(nal, 2, RECOVERY_POINT) !== undefined;
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
  for (const nal of nalUnits(data)) if (nalType(nal) <= NAL.lastVcl) return parseSliceStart(nal).pps;
  return undefined;
}

function role(nal: Buffer): NalRole {
  // decoders of the base layer ignore other layers (depth, alpha, a second view)
  if (layer(nal) > 0) return 'disposable';
  if (isParameterSet(nal)) return 'parameterSet';
  const type = nalType(nal);
  // a second header byte of 0, a temporal id of -1, is part of a start code
  if (type <= NAL.lastVcl && nal[1] !== 0) return 'slice';
  return type === NAL.delimiter || type === NAL.filler ? 'disposable' : 'media';
}

function layer(nal: Buffer): number {
  return (((nal[0] as number) & 1) << 5) | ((nal[1] ?? 0) >> 3);
}
