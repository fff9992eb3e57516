import { unescapeNal } from './nal.ts';

/** How decoding can start at a picture. */
export type StartKind = 'idr' | 'open' | 'gradual';

/** payloadType of a recovery point (H.264 and H.265, annex D). */
export const RECOVERY_POINT = 6;

/**
 * The payload of the first SEI message of a type in a NAL unit (H.264 7.3.2.3.1, H.265 7.3.5), without emulation prevention;
 * one that is cut off is as long as it is there.
 * @param head bytes of the NAL unit's header
 */
export function seiMessage(nal: Buffer, head: number, wanted: number): Buffer | undefined {
  const data = unescapeNal(nal);
  let at = head;
  // the last byte holds the trailing bits: a message needs two more
  while (at + 2 < data.length) {
    let type = 0;
    let size = 0;
    // each is the sum of bytes up to the first that is not 0xff
    for (; data[at] === 0xff; at++) type += 255;
    type += data[at++] ?? 0;
    for (; data[at] === 0xff; at++) size += 255;
    size += data[at++] ?? 0;
    if (type === wanted) return data.subarray(at, at + size);
    at += size;
  }
  return undefined;
}
