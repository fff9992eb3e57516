import { RtpError } from './error.ts';
import type { Fragment } from './joined.ts';

const EXTENDED = 0x80;
const START_OF_PARTITION = 0x10;
const PARTITION = 0x07;
const HAS_PICTURE_ID = 0x80;
const LONG_PICTURE_ID = 0x80;
const HAS_TL0 = 0x40;
const HAS_TID_OR_KEY = 0x30;

/** Reads a piece of a VP8 frame, after its descriptor (RFC 7741 section 4.2). @throws RtpError */
export function readVp8(payload: Buffer): Fragment {
  const first = payload[0] as number;
  let at = 1;
  if ((first & EXTENDED) !== 0) {
    const flags = payload[at++] ?? 0;
    if ((flags & HAS_PICTURE_ID) !== 0) at += ((payload[at] ?? 0) & LONG_PICTURE_ID) !== 0 ? 2 : 1;
    if ((flags & HAS_TL0) !== 0) at++;
    if ((flags & HAS_TID_OR_KEY) !== 0) at++;
  }
  if (at >= payload.length) throw new RtpError('a VP8 payload is too short');
  const isFirst = (first & START_OF_PARTITION) !== 0 && (first & PARTITION) === 0;
  return { place: isFirst ? 'first' : 'later', isLast: false, data: payload.subarray(at) };
}
