import { RtpError } from './error.ts';

/** Sender report: relation of a stream's RTP time to the sender's clock (RFC 3550 section 6.4.1). */
export interface SenderTime {
  readonly ssrc: number;
  /** The sender's clock, in milliseconds since its epoch, 1900 or any other; undefined when it has none. */
  readonly ntpMs: number | undefined;
  /** The middle 32 bits of its NTP time, which a receiver report gives back. */
  readonly compactNtp: number;
  /** RTP time of the same instant. */
  readonly rtpTime: number;
}

export interface RtcpReports {
  readonly senders: readonly SenderTime[];
  /** Sources that leave. */
  readonly byes: readonly number[];
}

const VERSION = 2;
const SENDER_REPORT = 200;
const BYE = 203;
const SENDER_INFO_BYTES = 28;

/**
 * Reads the sender reports and BYEs of a compound packet.
 * @throws RtpError
 */
export function parseRtcp(data: Buffer): RtcpReports {
  const senders: SenderTime[] = [];
  const byes: number[] = [];
  for (let at = 0; at < data.length;) {
    if (at + 4 > data.length || (data[at] as number) >> 6 !== VERSION) throw new RtpError('not an RTCP packet');
    const count = (data[at] as number) & 0x1f;
    const type = data[at + 1] as number;
    const end = at + 4 * (data.readUInt16BE(at + 2) + 1);
    if (end > data.length) throw new RtpError('an RTCP packet is cut off');
    if (type === SENDER_REPORT) {
      if (end < at + SENDER_INFO_BYTES) throw new RtpError('a sender report is cut off');
      senders.push(readSender(data, at));
    } else if (type === BYE) {
      for (let i = 0; i < count && at + 8 + 4 * i <= end; i++) byes.push(data.readUInt32BE(at + 4 + 4 * i));
    }
    at = end;
  }
  return { senders, byes };
}

function readSender(data: Buffer, at: number): SenderTime {
  const seconds = data.readUInt32BE(at + 8);
  const fraction = data.readUInt32BE(at + 12);
  return {
    ssrc: data.readUInt32BE(at + 4),
    ntpMs: seconds === 0 && fraction === 0 ? undefined : (seconds + fraction / 2 ** 32) * 1000,
    compactNtp: ((seconds & 0xffff) * 0x10000 + (fraction >>> 16)) >>> 0,
    rtpTime: data.readUInt32BE(at + 16),
  };
}
