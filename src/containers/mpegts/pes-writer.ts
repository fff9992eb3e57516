import { BitstreamError } from '../../codecs/bits.ts';
import { STREAM_ID } from './stream-types.ts';
import { wrapped } from './times.ts';

const HEAD_BYTES = 9;
/** Bytes before those that PES_packet_length counts. */
const UNCOUNTED_BYTES = 6;
const TIME_BYTES = 5;
const MAX_LENGTH = 0xffff;
const PTS = 2;
const PTS_AND_DTS = 3;

/** Bytes of the header for times in ticks of 90 kHz. */
export function pesHeaderBytes(pts: number, dts: number): number {
  return HEAD_BYTES + (pts === dts ? TIME_BYTES : 2 * TIME_BYTES);
}

/** Only video may be longer than the length field can express. @throws BitstreamError */
export function checkLength(streamId: number, pts: number, dts: number, payload: number): void {
  if (streamId === STREAM_ID.video || pesHeaderBytes(pts, dts) - UNCOUNTED_BYTES + payload <= MAX_LENGTH) return;
  throw new BitstreamError(`a frame of ${payload} bytes is too long for a PES packet`);
}

/**
 * Builds the header of a PES packet (ISO/IEC 13818-1 2.4.3.6), whose payload begins with a frame.
 * @param pts and `dts` in ticks of 90 kHz, not wrapped
 * @param payload bytes after it
 */
export function pesHeader(streamId: number, pts: number, dts: number, payload: number): Buffer {
  const header = Buffer.allocUnsafe(pesHeaderBytes(pts, dts));
  const length = header.length - UNCOUNTED_BYTES + payload;
  header.writeUIntBE(0x000001, 0, 3);
  header[3] = streamId;
  header.writeUInt16BE(length > MAX_LENGTH ? 0 : length, 4);
  // data_alignment_indicator
  header[6] = 0x84;
  const times = pts === dts ? PTS : PTS_AND_DTS;
  header[7] = times << 6;
  header[8] = header.length - HEAD_BYTES;
  writeTime(header, HEAD_BYTES, times, pts);
  if (times === PTS_AND_DTS) writeTime(header, HEAD_BYTES + TIME_BYTES, 1, dts);
  return header;
}

function writeTime(header: Buffer, at: number, mark: number, time: number): void {
  const value = wrapped(time);
  header[at] = (mark << 4) | (Math.floor(value / 2 ** 30) << 1) | 1;
  header.writeUInt16BE(((Math.floor(value / 2 ** 15) & 0x7fff) << 1) | 1, at + 1);
  header.writeUInt16BE(((value & 0x7fff) << 1) | 1, at + 3);
}
