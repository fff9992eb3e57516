import { OBU, obus } from './av1-obu.ts';
import { BitstreamError } from './bits.ts';
import { NAL as H264 } from './h264.ts';
import { NAL as H265 } from './h265.ts';

/** ITU-T T.35 country and provider, `GA94`, and the type of cc_data (ATSC A/53 Part 4, 6.2.3). */
const CC_DATA = Buffer.from('b500314741393403', 'hex');
/** metadata_type of ITU-T T.35 (AV1 6.7.1). */
const ITUT_T35 = 4;

/** Whether a frame in canonical form of H264, H265 or AV1 carries closed captions (CEA-608, CEA-708), even empty ones. */
export function carriesCaptions(codec: string, data: Buffer): boolean {
  switch (codec) {
    case 'H264':
      return inSei(data, sortH264);
    case 'H265':
      return inSei(data, sortH265);
    case 'AV1':
      return inMetadata(data);
    default:
      return false;
  }
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

/** Looks at the NAL units before the first slice. */
function inSei(data: Buffer, sort: (header: number) => Sort): boolean {
  for (let at = 0; at + 5 <= data.length;) {
    const end = at + 4 + data.readUInt32BE(at);
    const kind = sort(data[at + 4] as number);
    if (kind === 'picture') return false;
    if (kind === 'sei' && data.subarray(at + 5, end).includes(CC_DATA)) return true;
    at = end;
  }
  return false;
}

function inMetadata(data: Buffer): boolean {
  try {
    for (const { type, payload } of obus(data)) {
      if (type === OBU.frame || type === OBU.frameHeader) return false;
      if (type === OBU.metadata && payload[0] === ITUT_T35 && payload.indexOf(CC_DATA) === 1) return true;
    }
  } catch (error) {
    if (!(error instanceof BitstreamError)) throw error;
  }
  return false;
}
