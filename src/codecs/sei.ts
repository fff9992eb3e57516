import { NAL as H264 } from './h264.ts';
import { NAL as H265 } from './h265.ts';
import { escapeNal } from './nal.ts';

export type SeiCodec = 'H264' | 'H265';

const USER_DATA_UNREGISTERED = 5;
const STOP_BIT = 0x80;
/** nal_ref_idc 0 for H.264; layer 0 and temporal layer 0 for H.265. */
const HEADERS: Readonly<Record<SeiCodec, Buffer>> = {
  H264: Buffer.of(H264.sei),
  H265: Buffer.of(H265.prefixSei << 1, 1),
};

export function takesSei(codec: string): codec is SeiCodec {
  return codec in HEADERS;
}

/** Builds a NAL unit with one SEI message of user_data_unregistered (H.264 D.1.7, H.265 D.2.7). @param uuid 16 bytes */
export function userDataSei(codec: SeiCodec, uuid: Buffer, data: Buffer): Buffer {
  const size = uuid.length + data.length;
  const sizes = [...Array.from({ length: Math.floor(size / 255) }, () => 255), size % 255];
  const message = [Buffer.from([USER_DATA_UNREGISTERED, ...sizes]), uuid, data, Buffer.of(STOP_BIT)];
  return Buffer.concat([HEADERS[codec], escapeNal(Buffer.concat(message))]);
}

/** Inserts a NAL unit, such as SEI, before the first slice of an access unit in canonical form. */
export function withNalBeforeSlices(codec: SeiCodec, data: Buffer, nal: Buffer): Buffer {
  const at = firstSlice(codec, data);
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32BE(nal.length);
  return Buffer.concat([data.subarray(0, at), length, nal, data.subarray(at)]);
}

function firstSlice(codec: SeiCodec, data: Buffer): number {
  for (let at = 0; at + 4 < data.length;) {
    const header = data.readUInt8(at + 4);
    const isSlice = codec === 'H264' ? isH264Slice(header & 0x1f) : ((header >> 1) & 0x3f) <= H265.lastVcl;
    if (isSlice) return at;
    at += 4 + data.readUInt32BE(at);
  }
  return 0;
}

function isH264Slice(type: number): boolean {
  return type >= H264.slice && type <= H264.idr;
}
