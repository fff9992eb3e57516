import { NAL } from '../../../codecs/h265.ts';
import { RtpError } from './error.ts';
import type { Place } from './frame-assembler.ts';
import { behindStartCode, NalFormat } from './nal-format.ts';

const HEADER_BYTES = 2;
const AGGREGATION = 48;
const FRAGMENT = 49;
const FU_START = 0x80;
const FU_END = 0x40;
const FU_TYPE = 0x3f;
/** Layer and temporal bits of a header, all but the type. */
const NOT_TYPE = 0x81;
/** first_slice_segment_in_pic_flag (H.265 7.3.6.1). */
const FIRST_SLICE = 0x80;

/** H.265 (RFC 7798) as it is sent without interleaving: single NAL units, aggregation packets, fragments. */
export class H265Format extends NalFormat {
  place(sent: Buffer): Place {
    const payload = behindStartCode(sent);
    const type = typeOf(payload[0] as number);
    if (type === AGGREGATION) return placeOfNal(typeOf(payload[4] ?? 0), payload[6] ?? 0);
    if (type !== FRAGMENT) return placeOfNal(type, payload[2] ?? 0);
    const header = payload[2] ?? 0;
    // no NAL unit has a temporal id of -1: a start code has
    if (payload[1] === 0) return 'first';
    return (header & FU_START) !== 0 ? placeOfNal(header & FU_TYPE, payload[3] ?? 0) : 'later';
  }

  add(payload: Buffer): boolean {
    if (payload.length <= HEADER_BYTES) throw new RtpError('an H.265 payload is too short');
    const type = typeOf(payload[0] as number);
    if (type === AGGREGATION) this.aggregated(payload, HEADER_BYTES);
    else if (type === FRAGMENT) this.#fragment(payload);
    else if (type < AGGREGATION) this.unit(payload);
    else throw new RtpError(`H.265 payload of type ${type}`);
    return false;
  }

  #fragment(payload: Buffer): void {
    if (payload.length < 4) throw new RtpError('an empty fragment');
    const header = payload[2] as number;
    const isFirst = (header & FU_START) !== 0;
    if (isFirst) {
      // the header of the unit, moved up to its first bytes
      payload[2] = payload[1] as number;
      payload[1] = ((payload[0] as number) & NOT_TYPE) | ((header & FU_TYPE) << 1);
    }
    this.fragment(payload.subarray(isFirst ? 1 : 3), isFirst, (header & FU_END) !== 0);
  }
}

function typeOf(header: number): number {
  return (header >> 1) & FU_TYPE;
}

function placeOfNal(type: number, slice: number): Place {
  if (type === NAL.suffixSei) return 'later';
  return type <= NAL.lastVcl && (slice & FIRST_SLICE) === 0 ? 'later' : 'first';
}
