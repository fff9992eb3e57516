import { RtpError } from './error.ts';
import type { Fragment } from './joined.ts';

const HAS_PICTURE_ID = 0x80;
const INTER_PREDICTED = 0x40;
const HAS_LAYERS = 0x20;
const FLEXIBLE = 0x10;
const START_OF_FRAME = 0x08;
const END_OF_FRAME = 0x04;
const HAS_STRUCTURE = 0x02;
const LONG_PICTURE_ID = 0x80;
const MORE_REFERENCES = 0x01;
const MAX_REFERENCES = 3;
const HAS_SIZES = 0x10;
const HAS_GROUP = 0x08;

/**
 * Reads a piece of a VP9 frame, after its descriptor (RFC 9628 section 4.2). Of several
 * spatial layers the lowest is taken: every decoder shows it as intended, and it depends on no other. All temporal layers are taken.
 * @throws RtpError
 */
export function readVp9(payload: Buffer): Fragment {
  const first = payload[0] as number;
  let at = 1;
  if ((first & HAS_PICTURE_ID) !== 0) at += ((payload[at] ?? 0) & LONG_PICTURE_ID) !== 0 ? 2 : 1;
  let layer = 0;
  if ((first & HAS_LAYERS) !== 0) {
    layer = ((payload[at] ?? 0) >> 1) & 7;
    // TL0PICIDX is there in the other mode alone
    at += (first & FLEXIBLE) !== 0 ? 1 : 2;
  }
  if ((first & FLEXIBLE) !== 0 && (first & INTER_PREDICTED) !== 0) {
    for (let i = 0; i < MAX_REFERENCES; i++) if (((payload[at++] ?? 0) & MORE_REFERENCES) === 0) break;
  }
  if ((first & HAS_STRUCTURE) !== 0) at = structureEnd(payload, at);
  if (at >= payload.length) throw new RtpError('a VP9 payload is too short');
  const place = layer > 0 ? 'skipped' : (first & START_OF_FRAME) !== 0 ? 'first' : 'later';
  return { place, isLast: (first & END_OF_FRAME) !== 0, data: payload.subarray(at) };
}

function structureEnd(payload: Buffer, start: number): number {
  const structure = payload[start] ?? 0;
  let at = start + 1;
  if ((structure & HAS_SIZES) !== 0) at += 4 * ((structure >> 5) + 1);
  if ((structure & HAS_GROUP) !== 0) {
    const groupSize = payload[at++] ?? 0;
    for (let i = 0; i < groupSize && at < payload.length; i++) at += 1 + (((payload[at] as number) >> 2) & 3);
  }
  return at;
}
