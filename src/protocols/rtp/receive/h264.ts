import { NAL } from '../../../codecs/h264.ts';
import { startsWithCode } from '../../../codecs/nal.ts';
import { RtpError } from './error.ts';
import type { Place } from './frame-assembler.ts';
import { behindStartCode, NalFormat } from './nal-format.ts';

const STAP_A = 24;
const FU_A = 28;
const FU_START = 0x80;
const FU_END = 0x40;
const TYPE = 0x1f;
const PARTITION_C = 4;
/** first_mb_in_slice is 0: the slice is the first of its picture (H.264 7.4.3). */
const FIRST_MB_IS_0 = 0x80;

/** H.264 in packetization modes 0 and 1 (RFC 6184): single NAL units, STAP-A, FU-A. */
export class H264Format extends NalFormat {
  place(sent: Buffer): Place {
    const payload = behindStartCode(sent);
    const type = (payload[0] as number) & TYPE;
    if (type === STAP_A) return placeOfNal(payload[3] ?? 0, payload[4] ?? 0);
    if (type !== FU_A) return placeOfNal(type, payload[1] ?? 0);
    const header = payload[1] ?? 0;
    return (header & FU_START) !== 0 ? placeOfNal(header, payload[2] ?? 0) : 'later';
  }

  add(payload: Buffer): boolean {
    const indicator = payload[0] as number;
    const type = indicator & TYPE;
    if (type === STAP_A) {
      this.aggregated(payload, 1);
    } else if (type === FU_A) {
      this.#fragment(payload, indicator);
    } else if ((type > 0 && type < STAP_A) || startsWithCode(payload)) {
      this.unit(payload);
    } else {
      throw new RtpError(`H.264 payload of type ${type}`);
    }
    return false;
  }

  #fragment(payload: Buffer, indicator: number): void {
    if (payload.length < 3) throw new RtpError('an empty fragment');
    const header = payload[1] as number;
    const isFirst = (header & FU_START) !== 0;
    // the header of the unit takes the place of the fragment's
    if (isFirst) payload[1] = (indicator & ~TYPE) | (header & TYPE);
    this.fragment(payload.subarray(isFirst ? 1 : 2), isFirst, (header & FU_END) !== 0);
  }
}

function placeOfNal(header: number, slice: number): Place {
  const type = header & TYPE;
  if (type > NAL.partitionA && type <= PARTITION_C) return 'later';
  const isSlice = type === NAL.slice || type === NAL.partitionA || type === NAL.idr;
  return isSlice && (slice & FIRST_MB_IS_0) === 0 ? 'later' : 'first';
}
