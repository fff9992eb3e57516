import { RTP_HEADER_SIZE } from '../header.ts';
import { RtpError } from './error.ts';

export interface RtpPacket {
  readonly payloadType: number;
  readonly marker: boolean;
  /** Modulo 2^16. */
  readonly sequence: number;
  /** Modulo 2^32. */
  readonly timestamp: number;
  readonly ssrc: number;
  /** A slice of what was received, without padding. */
  readonly payload: Buffer;
}

const VERSION = 2;
const PADDING = 0x20;
const EXTENSION = 0x10;
const CSRC_COUNT = 0x0f;
const MARKER = 0x80;

/**
 * Reads one packet; contributing sources and header extensions are passed over (RFC 3550 section 5.1).
 * @throws RtpError
 */
export function parseRtp(data: Buffer): RtpPacket {
  if (data.length < RTP_HEADER_SIZE) throw new RtpError('an RTP packet is too short');
  const first = data[0] as number;
  if (first >> 6 !== VERSION) throw new RtpError('not RTP version 2');
  let start = RTP_HEADER_SIZE + (first & CSRC_COUNT) * 4;
  if ((first & EXTENSION) !== 0) {
    if (start + 4 > data.length) throw new RtpError('an RTP header extension is cut off');
    start += 4 + data.readUInt16BE(start + 2) * 4;
  }
  let end = data.length;
  if ((first & PADDING) !== 0) {
    const padding = data[end - 1] as number;
    if (padding === 0) throw new RtpError('RTP padding without a length');
    end -= padding;
  }
  if (start > end) throw new RtpError('an RTP header is longer than its packet');
  const second = data[1] as number;
  return {
    payloadType: second & ~MARKER,
    marker: (second & MARKER) !== 0,
    sequence: data.readUInt16BE(2),
    timestamp: data.readUInt32BE(4),
    ssrc: data.readUInt32BE(8),
    payload: data.subarray(start, end),
  };
}

/** Packet types that RTCP has and RTP leaves out, where both share a port (RFC 5761 section 4). */
const FIRST_RTCP = 192;
const LAST_RTCP = 223;

/** Whether a packet is RTCP, on a transport that RTP and RTCP share. */
export function isRtcp(data: Buffer): boolean {
  const type = data[1] ?? 0;
  return type >= FIRST_RTCP && type <= LAST_RTCP;
}
