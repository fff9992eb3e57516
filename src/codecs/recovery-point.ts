import { escapeNal, joinNals, nalUnits, unescapeNal } from './nal.ts';

/** How decoding can start at a picture: see `startOf` of each codec. */
export type StartKind = 'idr' | 'open' | 'gradual';

/** payloadType of a recovery point (H.264 and H.265, annex D). */
export const RECOVERY_POINT = 6;

const H264_SEI = 6;
const STOP_BIT = 0x80;

/**
 * Payload of the first SEI message of a type in a NAL unit (H.264 7.3.2.3.1, H.265 7.3.5), without emulation prevention;
 * shorter when cut off.
 * @param head bytes of the NAL unit's header
 */
export function seiMessage(nal: Buffer, head: number, wanted: number): Buffer | undefined {
  const [first] = seiMessages(nal, head, wanted);
  return first;
}

/** Payloads of all SEI messages of a type, as those of `seiMessage`. */
export function* seiMessages(nal: Buffer, head: number, wanted: number): IterableIterator<Buffer> {
  const data = unescapeNal(nal);
  for (const { type, begin, end } of messages(data, head)) if (type === wanted) yield data.subarray(begin, end);
}

/**
 * Removes the recovery points from an H.264 access unit in canonical form. Chromium 150 starts decoding at every one, whatever
 * the container says, and fails when pictures after it need earlier ones (findings/chromium-mse-recovery-points.sh).
 * @throws BitstreamError when malformed
 */
export function withoutRecoveryPoints(data: Buffer): Buffer {
  return joinNals(
    [...nalUnits(data)].flatMap((nal) => (((nal[0] as number) & 0x1f) === H264_SEI ? withoutMessages(nal) : nal)),
  );
}

function withoutMessages(nal: Buffer): Buffer | readonly Buffer[] {
  const data = unescapeNal(nal);
  const kept: Buffer[] = [];
  let hasOne = false;
  for (const { type, from, end } of messages(data, 1)) {
    if (type === RECOVERY_POINT) hasOne = true;
    else kept.push(data.subarray(from, end));
  }
  if (!hasOne) return nal;
  if (kept.length === 0) return [];
  return Buffer.concat([nal.subarray(0, 1), escapeNal(Buffer.concat([...kept, Buffer.of(STOP_BIT)]))]);
}

/** Lists the SEI messages of a NAL unit without emulation prevention: `begin` and `end` bound the payload. */
function* messages(data: Buffer, head: number) {
  let at = head;
  // the last byte holds the trailing bits: a message needs two more
  while (at + 2 < data.length) {
    const from = at;
    let type = 0;
    let size = 0;
    // each is the sum of bytes up to the first that is not 0xff
    for (; data[at] === 0xff; at++) type += 255;
    type += data[at++] ?? 0;
    for (; data[at] === 0xff; at++) size += 255;
    size += data[at++] ?? 0;
    const begin = at;
    at += size;
    yield { type, from, begin, end: Math.min(at, data.length) };
  }
}
