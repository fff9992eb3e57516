import { OBU, obus } from '../av1-obu.ts';
import { BitstreamError } from '../bits.ts';
import { NAL as H264 } from '../h264.ts';
import { NAL as H265 } from '../h265.ts';
import { seiMessages } from '../recovery-point.ts';

/** ITU-T T.35 country and provider, `GA94`, and the type of cc_data (ATSC A/53 Part 4, 6.2.3). */
const CC_DATA = Buffer.from('b500314741393403', 'hex');
const USER_DATA_T35 = 4;
/** metadata_type of ITU-T T.35 (AV1 6.7.1). */
const ITUT_T35 = 4;
const PROCESS_CC_DATA = 0x40;
const CC_COUNT = 0x1f;
/** cc_count, and em_data, which is reserved. */
const COUNT_BYTES = 2;
/** Bytes of a construct: its marker, validity and type, and two of data (CTA-708-E, 4.4.1). */
export const CONSTRUCT_BYTES = 3;

/**
 * Closed captions (CEA-608, CEA-708) of a frame in canonical form of H264, H265 or AV1.
 * @returns constructs of cc_data one after another, without one that is cut off; undefined where the frame carries none, not even padding
 */
export function captionData(codec: string, data: Buffer): Buffer | undefined {
  // cheap: most streams have none
  if (!data.includes(CC_DATA)) return undefined;
  switch (codec) {
    case 'H264':
      return joined(inSei(data, 1, sortH264));
    case 'H265':
      return joined(inSei(data, 2, sortH265));
    case 'AV1':
      return joined(inMetadata(data));
    default:
      return undefined;
  }
}

function joined(payloads: readonly Buffer[]): Buffer | undefined {
  if (payloads.length === 0) return undefined;
  return Buffer.concat(payloads.map(constructs));
}

/** @param payload of ITU-T T.35, from the country on */
function constructs(payload: Buffer): Buffer {
  const flags = payload[CC_DATA.length] ?? 0;
  if ((flags & PROCESS_CC_DATA) === 0) return Buffer.alloc(0);
  const begin = CC_DATA.length + COUNT_BYTES;
  const whole = Math.floor(Math.max(0, payload.length - begin) / CONSTRUCT_BYTES);
  return payload.subarray(begin, begin + Math.min(flags & CC_COUNT, whole) * CONSTRUCT_BYTES);
}

type Sort = 'sei' | 'picture' | 'other';

/** Sorts by the first byte of a NAL unit. */
function sortH264(header: number): Sort {
  const type = header & 0x1f;
  if (type === H264.sei) return 'sei';
  return type <= H264.idr ? 'picture' : 'other';
}

function sortH265(header: number): Sort {
  const type = (header >> 1) & 0x3f;
  if (type === H265.prefixSei) return 'sei';
  return type <= H265.lastVcl ? 'picture' : 'other';
}

/** Looks at the NAL units before the first slice. @param head bytes of the header of a NAL unit */
function inSei(data: Buffer, head: number, sort: (header: number) => Sort): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at + 5 <= data.length;) {
    const end = at + 4 + data.readUInt32BE(at);
    const kind = sort(data[at + 4] as number);
    if (kind === 'picture') break;
    const nal = data.subarray(at + 4, end);
    if (kind === 'sei' && nal.includes(CC_DATA)) {
      for (const payload of seiMessages(nal, head, USER_DATA_T35))
        if (payload.indexOf(CC_DATA) === 0) found.push(payload);
    }
    at = end;
  }
  return found;
}

function inMetadata(data: Buffer): Buffer[] {
  const found: Buffer[] = [];
  try {
    for (const { type, payload } of obus(data)) {
      if (type === OBU.frame || type === OBU.frameHeader) break;
      if (type === OBU.metadata && payload[0] === ITUT_T35 && payload.indexOf(CC_DATA) === 1)
        found.push(payload.subarray(1));
    }
  } catch (error) {
    if (!(error instanceof BitstreamError)) throw error;
  }
  return found;
}
