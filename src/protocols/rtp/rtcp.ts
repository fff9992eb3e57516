const SENDER_REPORT = 200;
const SOURCE_DESCRIPTION = 202;
const CNAME = 1;
/** Seconds from the NTP epoch, 1900, to the Unix epoch. */
const NTP_OFFSET = 2_208_988_800;
const REPORT_SIZE = 28;

export interface SenderReport {
  readonly ssrc: number;
  /** Wall clock, in milliseconds since the Unix epoch, of the instant that `rtpTime` names. */
  readonly wallMs: number;
  readonly rtpTime: number;
  readonly packets: number;
  readonly octets: number;
  /** At most 255 bytes. */
  readonly cname: string;
}

/** A sender report and the source's CNAME as one compound packet (RFC 3550 sections 6.4.1, 6.5). */
export function writeSenderReport({ ssrc, wallMs, rtpTime, packets, octets, cname }: SenderReport): Buffer {
  const name = Buffer.from(cname);
  // one to four zero bytes end the chunk
  const chunk = 4 + 2 + name.length;
  const description = 4 + chunk + (4 - (chunk % 4));
  const report = Buffer.alloc(REPORT_SIZE + description);
  writeHeader(report, 0, 0, SENDER_REPORT, REPORT_SIZE);
  report.writeUInt32BE(ssrc, 4);
  const seconds = Math.floor(wallMs / 1000);
  report.writeUInt32BE((seconds + NTP_OFFSET) % 2 ** 32, 8);
  report.writeUInt32BE(Math.floor((wallMs / 1000 - seconds) * 2 ** 32), 12);
  report.writeUInt32BE(rtpTime >>> 0, 16);
  report.writeUInt32BE(packets % 2 ** 32, 20);
  report.writeUInt32BE(octets % 2 ** 32, 24);
  writeHeader(report, REPORT_SIZE, 1, SOURCE_DESCRIPTION, description);
  report.writeUInt32BE(ssrc, REPORT_SIZE + 4);
  report[REPORT_SIZE + 8] = CNAME;
  report[REPORT_SIZE + 9] = name.length;
  name.copy(report, REPORT_SIZE + 10);
  return report;
}

function writeHeader(buffer: Buffer, at: number, count: number, type: number, size: number): void {
  buffer[at] = 0x80 | count;
  buffer[at + 1] = type;
  buffer.writeUInt16BE(size / 4 - 1, at + 2);
}
