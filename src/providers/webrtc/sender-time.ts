import type { SenderTime } from '../../protocols/rtp/receive/rtcp.ts';

/**
 * Converts a sender report of a mediasoup trace event. Reports that mediasoup writes for its own consumers have the
 * arrival of packets, not their capture.
 * @param info of a trace event `sr` of a producer
 * @param ssrc that a consumer of the producer has for the packets
 */
export function senderTime(info: Readonly<Record<string, unknown>>, ssrc: number): SenderTime {
  const { ntpSec, ntpFrac, rtpTs } = info as { ntpSec: number; ntpFrac: number; rtpTs: number };
  return {
    ssrc,
    ntpMs: ntpSec === 0 && ntpFrac === 0 ? undefined : (ntpSec + ntpFrac / 2 ** 32) * 1000,
    compactNtp: ((ntpSec & 0xffff) * 0x10000 + (ntpFrac >>> 16)) >>> 0,
    rtpTime: rtpTs,
  };
}
