import type { SenderTime } from '../../protocols/rtp/receive/rtcp.ts';

/**
 * A sender report, out of what mediasoup tells of it: reports that it writes for its own consumers tell when packets came,
 * and not when they were taken.
 * @param info of a trace event `sr` of a producer
 * @param ssrc of the packets that it is about, as a consumer has them
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
