import { BitReader, tolerant } from './bits.ts';
import { keyFrameShape } from './av1-frame-size.ts';
import { OBU, obus, writeLeb128, type Obu } from './av1-obu.ts';
import { parseSequenceHeader, type Av1SequenceHeader } from './av1-sequence.ts';
import type { Ratio } from './vui.ts';

export { buildAv1Config, codecString, parseAv1Config } from './av1-config.ts';
export { OBU, obus, type Obu } from './av1-obu.ts';
export { parseSequenceHeader, type Av1SequenceHeader } from './av1-sequence.ts';

const KEY_FRAME = 0;

/**
 * Converts a temporal unit to the canonical form of `Packet`: no temporal delimiters or padding, and a size in each OBU.
 * Copies only when a size is missing or a removed OBU is in the middle.
 * @throws BitstreamError
 */
export function canonicalize(data: Buffer): Buffer {
  let first = -1;
  let last = 0;
  let at = 0;
  let copy = false;
  const kept: Buffer[] = [];
  for (const obu of obus(data)) {
    if (obu.type !== OBU.temporalDelimiter && obu.type !== OBU.padding) {
      if (first < 0) first = at;
      else copy ||= last !== at;
      last = at + obu.data.length;
      if (obu.hasSize) {
        kept.push(obu.data);
      } else {
        copy = true;
        kept.push(...withSize(obu));
      }
    }
    at += obu.data.length;
  }
  if (first < 0) return data.subarray(0, 0);
  if (copy) return Buffer.concat(kept);
  return first === 0 && last === data.length ? data : data.subarray(first, last);
}

/**
 * Whether decoding can start at a temporal unit: its first frame is a shown key frame (AV1 7.6.1).
 * @throws BitstreamError when the unit is malformed before its first frame
 */
export function isKeyUnit(data: Buffer): boolean {
  let stillPicture = false;
  for (const { type, payload } of obus(data)) {
    if (type === OBU.sequenceHeader) stillPicture = parseSequenceHeader(payload).reducedStillPicture;
    if (type !== OBU.frame && type !== OBU.frameHeader) continue;
    if (stillPicture) return true;
    const reader = new BitReader(payload);
    const showExisting = reader.flag();
    return !showExisting && reader.read(2) === KEY_FRAME && reader.flag();
  }
  return false;
}

/** Sample aspect ratio by the first frame of a key unit; undefined when square or unreadable. */
export function keyUnitShape(data: Buffer, sequence: Av1SequenceHeader): Ratio | undefined {
  for (const obu of obus(data)) {
    if (obu.type === OBU.frame || obu.type === OBU.frameHeader) return tolerant(() => keyFrameShape(obu, sequence));
  }
  return undefined;
}

function withSize({ data, payload }: Obu): Buffer[] {
  const header = Buffer.from(data.subarray(0, data.length - payload.length));
  header[0] = (header[0] as number) | 2;
  return [header, writeLeb128(payload.length), payload];
}
