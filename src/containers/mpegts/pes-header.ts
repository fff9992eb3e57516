import { STREAM_ID } from './stream-types.ts';

/** Header of a PES packet. Times are on CLOCK. */
export interface PesHeader {
  readonly streamId: number;
  readonly pts: number | undefined;
  /** Equal to `pts` if the header has none. */
  readonly dts: number | undefined;
  readonly scrambled: boolean;
  /** Bytes after the length field, as it says; 0 when it leaves that open. */
  readonly announcedBytes: number;
  readonly length: number;
}

const PREFIX_BYTES = 6;
const FLAGS_BYTES = 9;
const TIME_BYTES = 5;

/** stream_ids of packets without a header after the length (ISO/IEC 13818-1 2.4.3.7). */
const WITHOUT_HEADER: ReadonlySet<number> = new Set([
  STREAM_ID.programStreamMap,
  STREAM_ID.padding,
  STREAM_ID.private2,
  STREAM_ID.ecm,
  STREAM_ID.emm,
  STREAM_ID.directory,
  0xf2,
  0xf8,
]);

/**
 * Bytes of the whole PES packet that starts here, by its length field; 0 when that leaves it open, undefined when none
 * starts.
 */
export function pesBytes(data: Buffer): number | undefined {
  if (data.length < PREFIX_BYTES || data.readUIntBE(0, 3) !== 1) return undefined;
  const length = data.readUInt16BE(4);
  return length === 0 ? 0 : PREFIX_BYTES + length;
}

/** Whether a PES packet belongs to a stream, unlike padding. @param data has its first bytes */
export function isOfStream(data: Buffer): boolean {
  return !WITHOUT_HEADER.has(data[3] as number);
}

/** Reads the header of a whole PES packet of a stream (2.4.3.6); undefined if it is malformed. */
export function readPesHeader(data: Buffer): PesHeader | undefined {
  const streamId = data[3] as number;
  if (data.length < FLAGS_BYTES) return undefined;
  const flags = data.readUInt8(7);
  const length = FLAGS_BYTES + data.readUInt8(8);
  if (data.readUInt8(6) >> 6 !== 2 || length > data.length) return undefined;
  const hasPts = (flags & 0x80) !== 0;
  const hasDts = (flags & 0xc0) === 0xc0;
  if (length < FLAGS_BYTES + (hasPts ? TIME_BYTES : 0) + (hasDts ? TIME_BYTES : 0)) return undefined;
  const pts = hasPts ? readTime(data, FLAGS_BYTES) : undefined;
  return {
    streamId,
    pts,
    dts: hasDts ? readTime(data, FLAGS_BYTES + TIME_BYTES) : pts,
    scrambled: (data.readUInt8(6) & 0x30) !== 0,
    announcedBytes: data.readUInt16BE(4),
    length,
  };
}

function readTime(data: Buffer, at: number): number {
  const high = (data.readUInt8(at) >> 1) & 7;
  const middle = data.readUInt16BE(at + 1) >> 1;
  const low = data.readUInt16BE(at + 3) >> 1;
  return high * 2 ** 30 + middle * 2 ** 15 + low;
}
